// What ranks do together: each function is called by all of them, in the same order.
#ifndef HIPPODROME_TOOLS_MPI_COLLECTIVES_H_
#define HIPPODROME_TOOLS_MPI_COLLECTIVES_H_

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/mpi/communicator.h"

namespace hippodrome {

// The bytes of rank `root` for all.
void Broadcast(Communicator& ranks, int root, std::span<std::byte> bytes);

// What each rank gives, as many bytes, one after another in the order of the ranks, for all.
std::vector<std::byte> AllGather(Communicator& ranks, std::span<const std::byte> bytes);
// The same of texts, of any length.
std::vector<std::string> AllGather(Communicator& ranks, const std::string& text);

// Returns when all have called it.
void Barrier(Communicator& ranks);

// What all ranks come to: OK where all are, else the first that is not, "rank 2 (HOST): ...".
absl::Status Agree(Communicator& ranks, const absl::Status& status);

// Whether it is true of any rank.
bool AnyOf(Communicator& ranks, bool value);

// kFailedPrecondition that names the first rank whose `text` is not that of rank 0, and `what` it
// tells.
absl::Status SameOnAll(Communicator& ranks, const std::string& what, const std::string& text);

// Of one rank: waits for a transfer with rank `peer`.
void Wait(Communicator& ranks, Communicator::Transfer transfer, int peer);

// Waits, mostly asleep: ranks may be more than processors.
class Patience {
 public:
  explicit Patience(Communicator& ranks);
  // A little longer; what is waited for is of rank `peer`.
  void Pause(int peer);

 private:
  Communicator& ranks_;
  int pauses_ = 0;
  std::chrono::steady_clock::time_point next_call_;
};

// How messages call a rank: "rank 2 (HOST)".
std::string RankName(int rank, const std::string& host);

// The ranks that run on this rank's machine.
struct LocalRanks {
  int index = 0;  // of this one among them
  int count = 1;
  // Processors for each: those that this process may use, shared with the ranks that may use the
  // same.
  int processors = 1;
};
LocalRanks FindLocalRanks(Communicator& ranks);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MPI_COLLECTIVES_H_
