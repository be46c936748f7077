// Chooses a backend.
#ifndef HIPPODROME_KERNELS_MAKE_BACKEND_H_
#define HIPPODROME_KERNELS_MAKE_BACKEND_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/all_reduce.h"
#include "kernels/backend.h"
#include "kernels/device_yardsticks.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// Threads that do arithmetic on the CPU. Backends may share them: an operation takes the pool
// whole, and backends that are busy at the same time take turns, fairly. Idle threads sleep.
class ThreadPool;

struct CpuOptions {
  int threads = 0;         // counts the one that calls an operation; 0: one per available core
  std::vector<int> cores;  // one for each thread, which stays there; empty: they may move
  std::shared_ptr<ThreadPool> pool;  // used instead of one of the backend's own, if it is not null
};

// As `options` say, whose pool is not looked at. Where they name cores, a thread that calls an
// operation is bound to the first (ThreadPool::LetGo()).
std::shared_ptr<ThreadPool> MakeThreadPool(const CpuOptions& options = {});

// Never fails. The caller owns the backend, which must outlive everything made by it.
std::unique_ptr<TrainingBackend> MakeCpuBackend(const CpuOptions& options = {});

enum class DeviceChoice : uint8_t {
  kAuto,  // CUDA where it works, else the CPU
  kCpu,
  kCuda,
};

struct ChosenBackend {
  std::unique_ptr<TrainingBackend> backend;  // null if the choice cannot be had
  std::string obstacle;  // why CUDA is not used, in one line; empty if it is or was not asked
};

// The CUDA backend is a module beside the executable, libhippodrome_cuda.so, that is loaded only
// here: without it, without a driver or without a device there is an obstacle, and under kAuto the
// CPU. The caller owns the backend, which must outlive everything made by it.
ChosenBackend MakeBackend(DeviceChoice device, const CpuOptions& cpu = {});

// For training on several devices. How many CUDA devices can be used: 0 where there is an obstacle.
int CountCudaDevices();
// A backend on CUDA device `device`, from 0; it binds the calling thread to that
// (TrainingBackend::BindThread()).
ChosenBackend MakeCudaBackend(int device);

struct ChosenAllReduce {
  std::unique_ptr<AllReduce> all_reduce;  // null if it cannot be had
  std::string obstacle;                   // why, in one line
};

// Sums by NCCL, libnccl.so.2, which is loaded only here. backends: of MakeCudaBackend(), each on a
// device of its own; they must outlive it.
ChosenAllReduce MakeCudaAllReduce(std::span<TrainingBackend* const> backends);

// One of several processes whose devices sum together.
struct AllReduceRank {
  std::string id;  // of NewAllReduceId() in one of them, the same for all
  int rank = 0;    // in [0, size)
  int size = 1;
};
// Empty where NCCL cannot be had, and the obstacle.
std::string NewAllReduceId(std::string& obstacle);
// As above, of this process's `backend` and those of the others, which make theirs at the same
// time: each waits for all. Of this process there is one backend then, 0.
ChosenAllReduce MakeCudaAllReduce(TrainingBackend& backend, const AllReduceRank& rank);

// Of the device that MakeBackend(kCuda) uses; null where it gives an obstacle.
std::unique_ptr<DeviceYardsticks> MakeDeviceYardsticks();

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_MAKE_BACKEND_H_
