#ifndef HIPPODROME_SERVER_VERSION_H_
#define HIPPODROME_SERVER_VERSION_H_

#include <string>

namespace hippodrome {

// The version of this build, as "0.1.0".
const std::string& Version();

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_VERSION_H_
