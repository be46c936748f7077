#include "engine/initialization/random_stream.h"

#include <cmath>
#include <numbers>

namespace hippodrome {
namespace {

// FNV-1a; not std::hash, whose values may change between libraries.
uint64_t HashName(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

RandomStream::RandomStream(uint64_t seed, const std::string& name)
    : seed_(MixBits(seed) ^ HashName(name)) {}

double RandomStream::Uniform(double low, double high) { return low + (high - low) * Next(); }

// Box and Muller (1958).
double RandomStream::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log1p(-Next()));
  const double angle = 2 * std::numbers::pi * Next();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

double RandomStream::TruncatedNormal() {
  constexpr double kDeviation = 0.87962566103423978;  // of a normal number given |x| <= 2
  double x = Normal();
  while (std::abs(x) > 2) x = Normal();
  return x / kDeviation;
}

}  // namespace hippodrome
