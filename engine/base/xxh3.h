// A fast checksum of 128 bits (XXH3), against damage: whoever wants the same one for other bytes
// can make them.
#ifndef HIPPODROME_ENGINE_BASE_XXH3_H_
#define HIPPODROME_ENGINE_BASE_XXH3_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hippodrome {

// Of all bytes that were added, however they were cut. Not thread-safe.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;

  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  // 32 lower-case digits.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_XXH3_H_
