// Ranks that are threads of one process, for tests of what ranks do together.
#ifndef HIPPODROME_TESTS_TESTING_THREAD_RANKS_H_
#define HIPPODROME_TESTS_TESTING_THREAD_RANKS_H_

#include <functional>

#include "tools/mpi/communicator.h"

namespace hippodrome {

// Calls `work` with each of `count` ranks, in a thread of its own, and returns when all have
// returned; what one throws is thrown here then. Messages are copied when they are sent, or handed
// over when they are received: by the number of a transfer, so that both orders occur.
void RunRanks(int count, const std::function<void(Communicator&)>& work);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_THREAD_RANKS_H_
