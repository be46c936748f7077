// What the module of MPI exports. Knows nothing of MPI: open_communicator.cc reads it too.
#ifndef HIPPODROME_TOOLS_MPI_MPI_MODULE_H_
#define HIPPODROME_TOOLS_MPI_MPI_MODULE_H_

#include <string>

namespace hippodrome {

class Communicator;

inline constexpr const char* kMpiModule = "libhippodrome_mpi.so";

// Of all processes that were started together; the caller owns it, and there is one in a process's
// life. What fails gives null, and the obstacle in one line.
using OpenMpiFunction = Communicator*(std::string& obstacle);
inline constexpr const char* kOpenMpi = "hippodrome_open_mpi";

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MPI_MPI_MODULE_H_
