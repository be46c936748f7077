// Stands for libnccl.so.2: as much as kernels/cuda/nccl/nccl_all_reduce.cu names, between devices
// of the emulator. The program that loads this library has the runtime, cudaMemcpyAsync() and so
// on.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/include/cuda_on_cpu/runtime_api.h"

namespace {

// As in nccl.h.
constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kFloat32 = 7;
constexpr int kSum = 0;

struct Call {
  const void* from;
  void* to;
  size_t count;
  cudaStream_t stream;
};

struct Clique;
struct Communicator {
  std::shared_ptr<Clique> clique;
  std::vector<Call> calls;  // of the open group
};
struct Clique {
  std::vector<Communicator*> members;
  // Threads that have to end their groups before one of them reduces: each has a member of its own.
  size_t threads = 1;
  std::mutex mutex;
  std::condition_variable changed;
  size_t ended = 0;
  int64_t rounds = 0;  // that were reduced
  int result = 0;      // of the last of them
};

// Of those who join one by one.
std::mutex groups_mutex;
std::map<std::string, std::shared_ptr<Clique>> groups;

thread_local int open_groups = 0;
thread_local std::vector<std::shared_ptr<Clique>> called;  // in the open group

// One call of every member, which have to fit.
int Reduce(const std::vector<Call>& calls) {
  const size_t count = calls[0].count;
  std::vector<float> sum(count), part(count);
  for (const Call& call : calls) {
    if (call.count != count) return kInvalidUsage;
    if (cudaMemcpyAsync(part.data(), call.from, count * sizeof(float), cudaMemcpyDeviceToHost,
                        call.stream) != cudaSuccess) {
      return kInvalidArgument;
    }
    for (size_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  for (const Call& call : calls) {
    cudaMemcpyAsync(call.to, sum.data(), count * sizeof(float), cudaMemcpyHostToDevice,
                    call.stream);
  }
  return kSuccess;
}

// The real library would wait forever for a member that has made fewer calls.
int Finish(Clique& clique) {
  const size_t count = clique.members[0]->calls.size();
  int result = kSuccess;
  for (const Communicator* member : clique.members) {
    if (member->calls.size() != count) result = kInvalidUsage;
  }
  for (size_t i = 0; i < count && result == kSuccess; ++i) {
    std::vector<Call> calls;
    for (const Communicator* member : clique.members) calls.push_back(member->calls[i]);
    result = Reduce(calls);
  }
  for (Communicator* member : clique.members) member->calls.clear();
  return result;
}

int FinishTogether(Clique& clique) {
  std::unique_lock lock(clique.mutex);
  const int64_t round = clique.rounds;
  if (++clique.ended == clique.threads) {
    clique.result = Finish(clique);
    clique.ended = 0;
    ++clique.rounds;
    clique.changed.notify_all();
  }
  clique.changed.wait(lock, [&] { return clique.rounds > round; });
  return clique.result;
}

struct Id {
  char bytes[128];
};

}  // namespace

extern "C" {

int ncclGetUniqueId(Id* id) {
  static std::atomic<int> last = 0;
  *id = {};
  const std::string name = "group " + std::to_string(++last);
  std::copy(name.begin(), name.end(), id->bytes);
  return kSuccess;
}

int ncclCommInitRank(Communicator** communicator, int count, Id id, int rank) {
  if (rank < 0 || rank >= count) return kInvalidArgument;
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard lock(groups_mutex);
    auto& group = groups[id.bytes];
    if (group == nullptr) group = std::make_shared<Clique>();
    clique = group;
  }
  *communicator = new Communicator{clique, {}};
  std::unique_lock lock(clique->mutex);
  clique->threads = static_cast<size_t>(count);
  clique->members.resize(clique->threads);
  clique->members[static_cast<size_t>(rank)] = *communicator;
  clique->changed.notify_all();
  clique->changed.wait(lock, [&] {
    return std::count(clique->members.begin(), clique->members.end(), nullptr) == 0;
  });
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kSuccess ? "no error" : result == kInvalidUsage ? "invalid usage" : "invalid";
}

int ncclCommInitAll(Communicator** communicators, int count, const int* devices) {
  int present = 0;
  cudaGetDeviceCount(&present);
  for (int i = 0; i < count; ++i) {
    if (devices[i] < 0 || devices[i] >= present) return kInvalidArgument;
    if (std::count(devices, devices + count, devices[i]) > 1) return kInvalidUsage;
  }
  const auto clique = std::make_shared<Clique>();
  clique->threads = static_cast<size_t>(count);
  for (int i = 0; i < count; ++i) {
    communicators[i] = new Communicator{clique, {}};
    clique->members.push_back(communicators[i]);
  }
  return kSuccess;
}

int ncclCommDestroy(Communicator* communicator) {
  delete communicator;
  return kSuccess;
}

int ncclGroupStart() {
  ++open_groups;
  return kSuccess;
}

int ncclGroupEnd() {
  if (open_groups == 0) return kInvalidUsage;
  if (--open_groups > 0) return kSuccess;
  int result = kSuccess;
  for (const auto& clique : std::exchange(called, {})) {
    const int one = FinishTogether(*clique);
    if (result == kSuccess) result = one;
  }
  return result;
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                  Communicator* communicator, cudaStream_t stream) {
  if (type != kFloat32 || operation != kSum) return kInvalidArgument;
  // Outside a group a thread would wait for itself.
  if (open_groups == 0) return kInvalidUsage;
  communicator->calls.push_back({from, to, count, stream});
  if (std::find(called.begin(), called.end(), communicator->clique) == called.end()) {
    called.push_back(communicator->clique);
  }
  return kSuccess;
}

}  // extern "C"
