# SPDX-License-Identifier: Apache-2.0
"""The certificates of one cluster: an authority, what it signs, and the key of service-account tokens; all of them die
with the cluster."""

import dataclasses
from pathlib import Path

from gscluster.shell import run

DAYS = "30"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclasses.dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path


class Authority:
    """Files `ca.crt`, `ca.key`, `sa.key`, `sa.pub` and NAME.crt, NAME.key in one folder that only root may read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self.key = folder / "ca.key"
        self.service_account_key = folder / "sa.key"
        self.service_account_public_key = folder / "sa.pub"

    def create(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True)
        subject = ("-subj", "/CN=gearshift-cluster", "-days", DAYS)
        run(["openssl", "req", "-x509", *NEW_KEY, *subject, "-keyout", self.key, "-out", self.certificate])
        curve = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1")
        run(["openssl", "genpkey", *curve, "-out", self.service_account_key])
        run(["openssl", "pkey", "-in", self.service_account_key, "-pubout", "-out", self.service_account_public_key])

    def sign(self, name: str, alternative_names: list[str], *, organization: str = "gearshift") -> Certificate:
        """Make a certificate for `name` (its common name) and `alternative_names` such as `DNS:localhost` or
        `IP:127.0.0.1`."""
        issued = Certificate(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(alternative_names)}\n")
        subject = ("-subj", f"/O={organization}/CN={name}")
        run(["openssl", "req", *NEW_KEY, *subject, "-keyout", issued.key, "-out", request])
        signer = ("-CA", self.certificate, "-CAkey", self.key, "-CAserial", self.folder / "ca.srl", "-CAcreateserial")
        output = ("-days", DAYS, "-extfile", extensions, "-out", issued.certificate)
        run(["openssl", "x509", "-req", "-in", request, *signer, *output])
        return issued
