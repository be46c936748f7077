// Reads what an opened checkpoint offers, a little of every tensor.
#ifndef HIPPODROME_TESTS_FUZZ_READ_CHECKPOINT_H_
#define HIPPODROME_TESTS_FUZZ_READ_CHECKPOINT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/convert/checkpoint_source.h"

namespace hippodrome {

inline void ReadEverything(CheckpointSource& source) {
  constexpr uint64_t kSome = 64;
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    const SourceTensor& tensor = source.tensors()[i];
    (void)source.Same(i, 0);
    if (!tensor.is_float || tensor.elements == 0) continue;
    std::vector<float> values(std::min(kSome, tensor.elements));
    (void)source.Read(i, 0, values);
    (void)source.Read(i, tensor.elements - values.size(), values);
  }
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_FUZZ_READ_CHECKPOINT_H_
