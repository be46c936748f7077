// Flax checkpoints, down to the elements of their arrays.
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/read_checkpoint.h"
#include "tools/convert/flax/flax_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hippodrome::MemoryFile file(data, size);
  const auto source = hippodrome::OpenFlaxCheckpoint(file.path());
  if (source.ok()) hippodrome::ReadEverything(**source);
  return 0;
}
