# SPDX-License-Identifier: Apache-2.0
"""Generation of the CRD from the pydantic models: ``python -m gearshift.api.crdgen [--check] DIR``."""

from gearshift.api.crdgen.crd import crd
from gearshift.api.crdgen.schema import SchemaError, structural

__all__ = ["SchemaError", "crd", "structural"]
