#include "server/version.h"

namespace hippodrome {

const std::string& Version() {
  static const std::string version = HIPPODROME_VERSION;
  return version;
}

}  // namespace hippodrome
