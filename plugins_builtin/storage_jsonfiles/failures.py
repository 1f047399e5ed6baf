"""Turns what the operating system says into the errors of the port. Repairs nothing."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from plugin_sdk.storage import (
    StorageDamagedError,
    StorageError,
    StorageFullError,
    StorageReadOnlyError,
    StorageUnavailableError,
)

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
MISPLACED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EMLINK})


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Lets no `OSError` out of its block.

    Args:
        place: The path that the person knows, for the message.

    Raises:
        StorageError: Of the kind that fits what the operating system said.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(error, place) from error


def storage_error(error: OSError, place: str) -> StorageError:
    """Returns the error of the port that fits."""
    why = error.strerror or type(error).__name__
    if error.errno in FULL:
        return StorageFullError(f"There is no space left for the store '{place}'.", "Make room, and try again.")
    if error.errno in READ_ONLY:
        return StorageReadOnlyError(
            f"The store '{place}' cannot be written ({why}).", "Change the permissions, or use another folder."
        )
    if error.errno in MISPLACED:
        return misplaced(place)
    return StorageUnavailableError(f"The store '{place}' cannot be reached ({why}).", "Check the disk, and try again.")


def misplaced(place: str) -> StorageDamagedError:
    """Returns the error about a symbolic link, or something that is neither file nor folder, inside a store."""
    return StorageDamagedError(
        f"'{place}' is a symbolic link, or not the kind of file that belongs there.",
        "Replace it by the file or folder it stands for; links are not followed inside a store.",
    )
