#include "tools/mpi/open_communicator.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "engine/base/status.h"
#include "kernels/open_module.h"
#include "tools/mpi/collectives.h"
#include "tools/mpi/mpi_module.h"

namespace hippodrome {
namespace {

// What launchers tell the processes that they start: mpirun, those that speak PMIx or PMI, and
// Slurm's srun.
constexpr const char* kLaunched[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
constexpr const char* kSlurmTask = "SLURM_PROCID";
constexpr const char* kSlurmTasks = "SLURM_STEP_NUM_TASKS";

int SlurmTasks() {
  if (std::getenv(kSlurmTask) == nullptr) return 1;
  const char* tasks = std::getenv(kSlurmTasks);
  return tasks == nullptr ? 1 : std::atoi(tasks);
}

bool IsLaunched() {
  return SlurmTasks() > 1 || std::ranges::any_of(kLaunched, [](const char* name) {
           return std::getenv(name) != nullptr;
         });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> OpenCommunicator() {
  if (!IsLaunched()) return nullptr;
  void* module = OpenModule(kMpiModule);
  if (module == nullptr) {
    return Unavailable("this process is one of an MPI job, but there is no MPI module: " +
                       std::string(dlerror()));
  }
  const auto open = reinterpret_cast<OpenMpiFunction*>(dlsym(module, kOpenMpi));
  if (open == nullptr) return Unavailable(dlerror());
  std::string obstacle;
  std::unique_ptr<Communicator> ranks(open(obstacle));
  if (ranks == nullptr) return Unavailable(obstacle);
  // Each would take itself for the whole job, and write over the others.
  if (ranks->size() == 1 && SlurmTasks() > 1) {
    return Unavailable("srun started " + std::to_string(SlurmTasks()) +
                       " tasks, of which MPI sees one; expected srun --mpi=pmix");
  }
  return ranks;
}

absl::Status RunOnRanks(std::unique_ptr<Communicator> ranks,
                        const std::function<absl::Status(Communicator*)>& work) {
  if (ranks == nullptr) return work(nullptr);
  absl::Status status;
  try {
    status = work(ranks.get());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hippodrome: %s: %s\n", RankName(ranks->rank(), ranks->host()).c_str(),
                 error.what());
    ranks->Abort(1);
  }
  const bool first = ranks->rank() == 0;
  ranks.reset();  // waits for the others
  // A launcher that sees one fail ends the others: rank 0 might not come to tell why.
  return first ? status : absl::OkStatus();
}

}  // namespace hippodrome
