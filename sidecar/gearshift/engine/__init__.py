# SPDX-License-Identifier: Apache-2.0
"""What runs in the engine container: its host process and what is loaded into vLLM."""
