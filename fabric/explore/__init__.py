"""Many runs, one answer: studies, depths of channels, streams of requests."""
