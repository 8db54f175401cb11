# SPDX-License-Identifier: BSD-3-Clause
"""What run.py is made of: catalogue, runner, results, figures, plots, facts about the machine."""
