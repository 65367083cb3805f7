"""Certificates of the test's own, made by openssl when they are needed."""

import subprocess
from pathlib import Path


def _openssl(*arguments: str | Path) -> None:
    result = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


class Authority:
    """A CA in a folder, and what it signs."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.ca = folder / "ca.pem"
        self._key = folder / "ca.key"
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-keyout", self._key, "-out", self.ca),
        )

    def sign(self, name: str, *, hosts: str = "", expired: bool = False) -> tuple[Path, Path]:
        """(certificate, key) of this common name, for these subject alternative names."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        request = self.folder / f"{name}.csr"
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", key, "-out", request),
        )
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={hosts}\n" if hosts else "basicConstraints=CA:FALSE\n")
        # `x509 -req` takes no date of the past; -days 0 ends the moment it begins.
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", "-1" if expired else "2", "-extfile", extensions, "-out", certificate),
        )
        return certificate, key
