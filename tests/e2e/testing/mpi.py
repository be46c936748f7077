"""mpirun on this machine, as tests need it: also for root, with more ranks than cores, and without ssh."""

import os

# The second that ranks have by default to say what they wait for, before they are killed, is too short beside other
# tests.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_plm="isolated",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_odls_base_sigkill_timeout="5")


def command(mpirun, ranks, *program):
    """To be run in ENVIRONMENT. Ranks share the cores."""
    return [mpirun, "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *program]
