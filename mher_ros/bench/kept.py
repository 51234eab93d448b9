"""Finished parts of long benchmarks, kept in files for later calls."""

from collections.abc import Sequence
import hashlib
import json
from pathlib import Path
from typing import Any

from mher_ros.experiments.provenance import code_digest
from mher_ros.files import write_atomically
from mher_ros.options import OptionError, os_errors_as_option_errors


class KeptResults:
    """Results in a folder, one file each; several processes may use it at the same time."""

    def __init__(self, folder: Path, code: str, sources: Sequence[str]) -> None:
        """
        Keep results in ``folder``, which is made if needed.

        ``code``: version of the code; empty: a digest of the code of all runs and of the files
        ``sources``.
        """
        self._folder, self._code = folder, code or _digest_of_files(sources)
        with os_errors_as_option_errors(f'cannot make the folder {folder}'):
            folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str, facts: Any, suffix: str = '.json') -> Path:
        """Return a path whose name has a digest of the code and of ``facts``, JSON values."""
        text = json.dumps([self._code, facts], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._folder / f'{name}-{digest}{suffix}'

    def read(self, name: str, facts: Any) -> Any:
        """Return a JSON value that was written; None if there is none."""
        path = self.path(name, facts)
        if not path.exists():
            return None
        try:
            return json.loads(path.read_text())['result']
        except (LookupError, OSError, TypeError, ValueError) as error:
            raise OptionError(f'{path} is not the file of a result: {error!r}') from error

    def write(self, name: str, facts: Any, result: Any) -> None:
        values = {'code': self._code, 'facts': facts, 'result': result}
        text = json.dumps(values, indent=1, allow_nan=False) + '\n'
        write_atomically(self.path(name, facts), text.encode())


def _digest_of_files(sources: Sequence[str]) -> str:
    digest = hashlib.sha256(code_digest().encode())
    for source in sources:
        digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:16]
