"""What a report of a problem needs to say about the machine."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_info

from kfree.kernels import kernels_in_force
from kfree.rows import n_threads

_PACKAGES = ("kfree", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
_OPTIONAL = ("matplotlib", "pandas", "polars", "pyarrow", "dask", "distributed")


def show_versions() -> None:
    """Print the versions of kfree and what it uses, its kernels, threads and BLAS: paste it into a bug report.

    Examples
    --------
    >>> import kfree
    >>> kfree.show_versions()  # doctest: +ELLIPSIS
    kfree          ...
    """
    for name, value in versions().items():
        print(f"{name:<14} {value}")


def versions() -> dict[str, str]:
    """What is installed and in force, by name."""
    found = {package: _version(package) for package in (*_PACKAGES, *_OPTIONAL)}
    lines = {
        package: number or "not installed as a package"
        for package, number in found.items()
        if number or package in _PACKAGES
    }
    lines["Python"] = f"{sys.version.split()[0]} ({platform.python_implementation()})"
    lines["machine"] = platform.platform()
    lines["kernels"] = kernels_in_force()
    lines["threads"] = str(n_threads())
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            lines["BLAS"] = f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
    return lines


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
