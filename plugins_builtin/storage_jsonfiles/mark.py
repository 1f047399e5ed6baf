"""Notes how far the journal is applied to the files, and counts commits. Never waits for the disk.

The note may be older than the truth after a machine stopped, which shows in the number of the start it was made in:
then everything in the journal is applied again, but for what another program replaced since.
"""

from __future__ import annotations

import os
import struct
import zlib

import attrs

from plugins_builtin.storage_jsonfiles.files import write_all

_NOTE = struct.Struct(">8sQQ16s16s")
_CHECKSUM = struct.Struct(">I")
_MAGIC = b"ocapply1"


@attrs.frozen(kw_only=True)
class Note:
    """How far the journal is applied.

    Attributes:
        generation: How many commits there were; another number after each.
        applied: The offset in the journal up to which the files have everything.
        run: The run of the journal that the offset is in.
        boot: The start of the machine in which this was noted.
    """

    generation: int
    applied: int
    run: bytes
    boot: bytes


@attrs.define(eq=False, repr=False)
class Mark:
    """The file with the note."""

    _descriptor: int

    def close(self) -> None:
        """Lets the file go; once."""
        os.close(self._descriptor)

    def read(self) -> Note | None:
        """Returns the note, or None when there is none that makes sense.

        Raises:
            OSError: The file cannot be read.
        """
        content = os.pread(self._descriptor, _NOTE.size + _CHECKSUM.size, 0)
        note, checksum = content[: _NOTE.size], content[_NOTE.size :]
        if len(note) < _NOTE.size or checksum != _CHECKSUM.pack(zlib.crc32(note)):
            return None
        magic, generation, applied, run, boot = _NOTE.unpack(note)
        if magic != _MAGIC:
            return None
        return Note(generation=generation, applied=applied, run=run, boot=boot)

    def write(self, note: Note) -> None:
        """Replaces the note.

        Raises:
            OSError: The file cannot be written.
        """
        content = _NOTE.pack(_MAGIC, note.generation & (1 << 64) - 1, note.applied, note.run, note.boot)
        write_all(self._descriptor, content + _CHECKSUM.pack(zlib.crc32(content)), at=0)
