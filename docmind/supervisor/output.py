"""What the parts print, line by line under their names. A part whose output nobody can take any more keeps running."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass, field

READ_BYTES = 65_536
LONGEST_LINE_BYTES = 65_536
NAME_WIDTH = 7


@dataclass(slots=True)
class LinePrinter:
    """Collects a pipe's bytes into whole lines."""

    name: str
    descriptor: int
    rest: bytearray = field(default_factory=bytearray)

    def pump(self) -> bool:
        """Print what has arrived, without waiting. Returns False at the end of the output."""
        try:
            piece = os.read(self.descriptor, READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            piece = b""
        self.rest += piece
        *lines, last = self.rest.split(b"\n")
        if last and (not piece or len(last) > LONGEST_LINE_BYTES):
            lines, last = [*lines, last], bytearray()
        self.rest = bytearray(last)
        for line in lines:
            say(line.decode("utf-8", "replace"), name=self.name)
        return bool(piece)


def say(text: str, *, name: str = "docmind") -> None:
    """One line, or several, under a name."""
    with contextlib.suppress(OSError):  # the terminal is gone
        for line in text.split("\n"):
            sys.stdout.write(f"{name:<{NAME_WIDTH}} | {line}\n")
        sys.stdout.flush()
