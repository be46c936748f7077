// The largest sizes that a config.json may name, of either family: small enough that no product of
// a few of them overflows 64 bits.
#ifndef HIPPODROME_ENGINE_CONFIG_CONFIG_LIMITS_H_
#define HIPPODROME_ENGINE_CONFIG_CONFIG_LIMITS_H_

#include <cstdint>

namespace hippodrome {

inline constexpr int64_t kMostChannels = 65536;
inline constexpr int64_t kMostLayers = 1024;
inline constexpr int64_t kMostInner = int64_t{1} << 20;
inline constexpr int64_t kMostRows = int64_t{1} << 24;
inline constexpr int64_t kMostStates = 4096;

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CONFIG_CONFIG_LIMITS_H_
