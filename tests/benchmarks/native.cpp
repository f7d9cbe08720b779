// A native model of one run, as someone would write it by hand for speed alone: units that do what
// they are told, channels with credits, and the cycle in which each unit ended.
//
// It is told what a command of ours finds out: what each operator does next, and how long the
// memory takes. Standard input has int64 numbers: units, channels, events; by unit the first event,
// and how many there are; by channel its producer, consumer, depth, cycles forward and backward, and
// elements; by event its channel (or how many events ago), its kind and its amount, as
// fabric/timing/retiming/events.py numbers them. Prints the seconds of the quickest of ARGUMENT
// rounds and, by unit, its last cycle.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

using Cycle = std::int64_t;

enum class Kind : Cycle {
    see, take, send, reserve, put, end, finish, work, wait, note, late, at, arrival, until, idle, hear
};

struct Event {
    Cycle place;
    Kind kind;
    Cycle amount;
};

struct Channel {
    Cycle producer, consumer, depth, forward, backward, elements;
    std::vector<Cycle> visible, usable;
    std::size_t sent = 0, reserved = 0, taken = 0;
    Cycle closed = -1, drained = -1;

    // Elements of which the reader has ended go as soon as they come.
    void drop() {
        for (; taken < sent; ++taken)
            usable[taken] = std::max(visible[taken], drained) + backward;
    }
};

struct Unit {
    std::size_t next, last;
    std::vector<std::size_t> inputs, outputs;
    Cycle now = 0, requested = -1, arrived = 0, awaits = -1;
};

class Model {
public:
    Model(const std::vector<Event>& events, std::vector<Unit> units, std::vector<Channel> channels)
        : events_(events), units_(std::move(units)), channels_(std::move(channels)),
          clocks_(events.size()) {
        for (std::size_t i = 0; i < channels_.size(); ++i) {
            channels_[i].visible.resize(channels_[i].elements);
            channels_[i].usable.resize(channels_[i].elements);
            units_[channels_[i].producer].outputs.push_back(i);
            units_[channels_[i].consumer].inputs.push_back(i);
        }
        for (std::size_t i = units_.size(); i-- > 0;) ready_.push_back(i);
    }

    void run() {
        while (!ready_.empty()) {
            Unit& unit = units_[ready_.back()];
            ready_.pop_back();
            unit.awaits = -1;
            while (unit.next < unit.last && step(unit, events_[unit.next]))
                clocks_[unit.next++] = unit.now;
        }
    }

    const std::vector<Unit>& units() const { return units_; }

private:
    void wake(Cycle number, Cycle channel) {
        if (units_[number].awaits == channel) {
            units_[number].awaits = -1;
            ready_.push_back(number);
        }
    }

    bool waits(Unit& unit, Cycle channel) {
        unit.awaits = channel;
        return false;
    }

    bool receive(Unit& unit, const Event& event) {
        Channel& channel = channels_[event.place];
        if (channel.taken >= channel.sent) return waits(unit, event.place);
        Cycle shown = channel.visible[channel.taken];
        unit.now = event.kind == Kind::idle ? std::max(unit.now, shown + event.amount)
                                            : std::max(unit.now + event.amount, shown);
        if (event.kind == Kind::take || event.kind == Kind::hear) {
            Cycle dequeued = event.kind == Kind::hear ? shown : unit.now;
            channel.usable[channel.taken++] = dequeued + channel.backward;
            wake(channel.producer, event.place);
        }
        return true;
    }

    bool spend(Unit& unit, const Event& event) {
        Channel& channel = channels_[event.place];
        Cycle before = Cycle(channel.sent + channel.reserved) - channel.depth;
        if (before >= Cycle(channel.taken)) return waits(unit, event.place);
        unit.now = std::max(unit.now + event.amount, before >= 0 ? channel.usable[before] : 0);
        return true;
    }

    void put(Unit& unit, Cycle number) {
        Channel& channel = channels_[number];
        channel.visible[channel.sent++] = std::max(unit.requested, unit.now + channel.forward);
        unit.requested = -1;
        if (channel.drained >= 0) channel.drop();
        wake(channel.consumer, number);
    }

    void finish(Unit& unit) {
        for (std::size_t number : unit.outputs) {
            channels_[number].closed = unit.now;
            wake(channels_[number].consumer, number);
        }
        for (std::size_t number : unit.inputs) {
            channels_[number].drained = unit.now;
            channels_[number].drop();
            wake(channels_[number].producer, number);
        }
    }

    // Does an event, or says that its unit has to wait.
    bool step(Unit& unit, const Event& event) {
        switch (event.kind) {
        case Kind::see: case Kind::take: case Kind::idle: case Kind::hear:
            return receive(unit, event);
        case Kind::send:
            if (!spend(unit, event)) return false;
            put(unit, event.place);
            return true;
        case Kind::reserve:
            if (!spend(unit, event)) return false;
            ++channels_[event.place].reserved;
            return true;
        case Kind::put:
            unit.now += event.amount;
            --channels_[event.place].reserved;
            put(unit, event.place);
            return true;
        case Kind::end:
            if (channels_[event.place].closed < 0) return waits(unit, event.place);
            unit.now = std::max(unit.now + event.amount, channels_[event.place].closed);
            return true;
        case Kind::finish:
            unit.now += event.amount;
            finish(unit);
            return true;
        case Kind::work: case Kind::wait:
            unit.now += event.amount;
            return true;
        case Kind::note:
            return true;
        case Kind::late:
            unit.requested = clocks_[unit.next - event.place] + event.amount;
            return true;
        case Kind::at:
            unit.requested = event.amount;
            return true;
        case Kind::arrival:
            unit.arrived = channels_[event.place].visible[event.amount];
            return true;
        case Kind::until:
            unit.now = std::max(unit.now, unit.arrived + event.amount);
            return true;
        }
        std::abort();
    }

    const std::vector<Event>& events_;
    std::vector<Unit> units_;
    std::vector<Channel> channels_;
    std::vector<Cycle> clocks_;
    std::vector<std::size_t> ready_;
};

static Cycle number() {
    Cycle value;
    if (std::fread(&value, sizeof value, 1, stdin) != 1) std::abort();
    return value;
}

int main(int, char** arguments) {
    Cycle unit_count = number(), channel_count = number(), event_count = number();
    std::vector<Unit> units(unit_count);
    for (std::size_t i = 0; i < units.size(); ++i) {
        units[i].next = number();
        if (i > 0) units[i - 1].last = units[i].next;
    }
    units.back().last = number();
    std::vector<Channel> channels(channel_count);
    for (Channel& each : channels)
        for (Cycle* field : {&each.producer, &each.consumer, &each.depth, &each.forward,
                             &each.backward, &each.elements})
            *field = number();
    std::vector<Event> events(event_count);
    for (Event& each : events) each = {number(), Kind(number()), number()};

    double best = 1e9;
    std::vector<Cycle> ended(units.size());
    for (int round = std::atoi(arguments[1]); round > 0; --round) {
        std::clock_t begun = std::clock();
        Model model(events, units, channels);
        model.run();
        best = std::min(best, double(std::clock() - begun) / CLOCKS_PER_SEC);
        for (std::size_t i = 0; i < units.size(); ++i)
            ended[i] = model.units()[i].next == model.units()[i].last ? model.units()[i].now : -1;
    }
    std::printf("%.6f\n", best);
    for (Cycle each : ended) std::printf("%lld\n", static_cast<long long>(each));
}
