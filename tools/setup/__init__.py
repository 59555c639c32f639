# SPDX-License-Identifier: Apache-2.0
"""Set-up of everything that Gearshift's tests and demo need on a fresh machine.

It runs before any environment exists, so it uses the standard library only. Every step is content-addressed: its
result lies under `$GEARSHIFT_CACHE` in a folder named by a hash of its inputs, is built aside and renamed into place,
and is therefore either absent or complete.
"""
