"""Settings shared by all tests; the helpers are in ``support``."""

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
