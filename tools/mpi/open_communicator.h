// Finds out whether this process was started as one of a job's.
#ifndef HIPPODROME_TOOLS_MPI_OPEN_COMMUNICATOR_H_
#define HIPPODROME_TOOLS_MPI_OPEN_COMMUNICATOR_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "tools/mpi/communicator.h"

namespace hippodrome {

// Null where this process was started alone: MPI is then not even loaded. Otherwise (mpirun, srun,
// an MPIJob of Kubernetes, which uses mpirun) the ranks of the job, over MPI. At most once in a
// process's life. Errors: kUnavailable where there is no MPI module, or where MPI and the launcher
// do not know each other.
absl::StatusOr<std::unique_ptr<Communicator>> OpenCommunicator();

// Calls `work`, whose errors all ranks have come to, with the ranks (null for one process). Its
// error is returned by rank 0, whose status is the job's; the others are given none. What `work`
// throws is of this rank alone: it is told, and ends the job.
absl::Status RunOnRanks(std::unique_ptr<Communicator> ranks,
                        const std::function<absl::Status(Communicator*)>& work);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MPI_OPEN_COMMUNICATOR_H_
