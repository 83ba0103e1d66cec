"""Settings shared by all tests; the helpers are in ``support``."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kfree",
    derandomize=True,
    deadline=None,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kfree")

# a shell starts jobs in the background with Ctrl-C ignored, which tests of interrupts would wait for in vain
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
