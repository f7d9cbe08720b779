"""Costs of several runs, such as the layers, the embedding and the head of a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from fabric.display.parts import Rows, Sheet, Title
from fabric.display.result import Result
from fabric.graph.arguments.described import refuse
from fabric.graph.wiring.program import TokenPhase
from fabric.messages.text import JsonObject, found_text
from fabric.runs.pricing import tokens_rate
from fabric.runs.printing import figure
from fabric.runs.report import Report

_SUMS: Final = (
    "cycles", "off_chip_traffic_bytes", "hbm_bytes_moved", "flops", "seconds", "joules",
    "tokens_per_second", "tokens_per_joule", "time_to_first_token_seconds",
)  # fmt: skip


@dataclass(frozen=True)
class CostPart:
    """One measured run.

    Attributes:
        runs: the number of runs that it represents, itself included.
        seconds, joules: of one run; None if unknown.
    """

    name: str
    runs: int
    cycles: int
    seconds: float | None
    joules: float | None


@dataclass(frozen=True, repr=False)
class Cost(Result):
    """The sum of several runs, each multiplied by the number of runs that it represents.

    Attributes:
        seconds, joules: None if unknown for one of the parts.
        joules_by_cause: None if nothing has a price; a cause without a price has None.
        tokens, token_phase: as the programs state them.
    """

    parts: tuple[CostPart, ...]
    cycles: int
    off_chip_traffic_bytes: int
    hbm_bytes_moved: int
    flops: int
    seconds: float | None
    joules: float | None
    joules_by_cause: dict[str, float | None] | None
    tokens: int | None
    token_phase: TokenPhase | None

    @staticmethod
    def of(*reports: Report) -> Cost:
        """Add up runs that completed.

        Raises:
            ProgramError: no report, a report of a run that did not complete, or programs that
                state different tokens.
        """
        if not reports:
            refuse("Cost.of is given nothing: expected reports")
        for report in reports:
            if not isinstance(report, Report):
                refuse(f"Cost.of is given {found_text(report)}: expected reports")
            if report.status != "completed":
                refuse(f"Cost.of: {report.name} ended as {report.status}: expected completed")
        with_tokens = [report for report in reports if report.tokens is not None]
        counts = {(report.tokens, report.token_phase) for report in with_tokens}
        if len(counts) > 1:
            stated = ", ".join(
                f"{report.name} {report.tokens:,} ({report.token_phase})" for report in with_tokens
            )
            refuse(
                f"Cost.of: programs state different tokens: {stated}: expected equal tokens of all "
                "programs that state them"
            )
        tokens, phase = next(iter(counts), (None, None))
        runs = [report.stands_for_runs or 1 for report in reports]
        pairs = list(zip(reports, runs, strict=True))
        sums = {
            name: sum(getattr(report, name) * count for report, count in pairs)
            for name in ("cycles", "off_chip_traffic_bytes", "hbm_bytes_moved", "flops")
        }
        return Cost(
            **sums,
            parts=tuple(
                CostPart(report.name, count, report.cycles or 0, report.seconds, report.joules)
                for report, count in pairs
            ),
            seconds=_summed([report.seconds for report in reports], runs),
            joules=_summed([report.joules for report in reports], runs),
            joules_by_cause=_by_cause(reports, runs),
            tokens=tokens,
            token_phase=phase,
        )

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second of all parts; None if tokens or seconds are unknown."""
        return tokens_rate(self.tokens, self.seconds)

    @property
    def tokens_per_joule(self) -> float | None:
        """Tokens per joule of all parts; None if tokens or joules are unknown."""
        return tokens_rate(self.tokens, self.joules)

    @property
    def time_to_first_token_seconds(self) -> float | None:
        """The seconds of a prefill; None for other phases."""
        return self.seconds if self.token_phase == "prefill" else None

    def as_json(self) -> JsonObject:
        """Return plain data. ``parts`` are single runs, other fields are sums over all runs."""
        return asdict(self) | {
            "tokens_per_second": self.tokens_per_second,
            "tokens_per_joule": self.tokens_per_joule,
            "time_to_first_token_seconds": self.time_to_first_token_seconds,
        }

    def sheet(self) -> Sheet:
        """Yield the sums, then the runs."""
        yield Title("Cost", ", of runs one after the other")
        sums = [row for name in _SUMS for row in figure(self, name)]
        if self.tokens is not None:
            sums.append(("tokens", f"{self.tokens:,}", self.token_phase or ""))
        yield Rows(("", "", ""), sums, right=frozenset({1}))
        yield Title("Runs", ", each row for a single run")
        parts = []
        for part in self.parts:
            prices = (price and f"{price:,.4g}" for price in (part.seconds, part.joules))
            parts.append((part.name, part.runs, part.cycles, *prices))
        yield Rows(("run", "times", "cycles", "seconds", "joules"), parts, right=frozenset({3, 4}))


def _summed(values: list[float | None], runs: list[int]) -> float | None:
    summands = [value * n for value, n in zip(values, runs, strict=True) if value is not None]
    return sum(summands) if len(summands) == len(values) else None


def _by_cause(reports: tuple[Report, ...], runs: list[int]) -> dict[str, float | None] | None:
    causes = dict.fromkeys(spending.cause for report in reports for spending in report.spent)
    # In a run with prices, a cause without events has no energy.
    return {
        cause: _summed(
            [(report.joules_by_cause or {cause: None}).get(cause, 0.0) for report in reports], runs
        )
        for cause in causes
    } or None
