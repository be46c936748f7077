// isolation OPERATIONS MODEL_DIR: admits, cancels, saves, resumes, scores and finishes requests of
// several tenants, which share prompts and their beginnings, in random order while all that is free
// holds NaN, on small random models and on the decoder of MODEL_DIR.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/model_directory.h"
#include "engine/models/h3/hybrid_h3.h"
#include "tests/testing/isolation.h"
#include "tests/testing/random_model.h"
#include "tests/testing/test_backend.h"

namespace hippodrome {
namespace {

bool Run(const std::string& name, Backend& backend, const HybridH3& model,
         const IsolationOptions& options, int64_t operations, uint32_t seed) {
  const IsolationResult r = RunIsolation(backend, model, options, operations, seed);
  fmt::print(
      "{}, {} tenants with {} requests each, {} slots: {} operations: {} admitted, {} refused for "
      "want of room, {} cancelled, {} saved and resumed, {} finished; {} prompts followed another, "
      "{} began with a state of the tree, which dropped {}; {} steps beside prompts; {} tokens and "
      "{} scores of prompts, all as alone; filled with NaN: {} slots, {} pages; fault: {}\n",
      name, options.tenants, options.requests, options.generator.max_sequences, operations,
      r.admitted, r.refused, r.cancelled, r.saved, r.finished, r.followers, r.hits, r.evicted,
      r.beside, r.tokens, r.scored, r.freed_slots, r.freed_pages,
      r.fault.empty() ? "none" : r.fault);
  return r.fault.empty();
}

bool RunAll(int64_t operations, const std::string& directory) {
  const std::unique_ptr<Backend> backend = MakeTestBackend().backend;
  const IsolationOptions small;
  bool good = true;
  for (const DType weights : {DType::kF32, DType::kBF16}) {
    const std::string type = weights == DType::kF32 ? "f32" : "bf16";
    const auto hybrid = MakeTestModel(*backend, TinyConfig(), weights);
    good &= Run("hybrid, " + type, *backend, *hybrid, small, operations, 1);
    good &= Run("hybrid, long prompts, " + type, *backend, *hybrid, LongPrompts(), operations, 4);
    H3Config config = TinyConfig();
    config.attention_layers = {};
    config.attention_heads = 0;
    const auto recurrent = MakeTestModel(*backend, config, weights);
    good &= Run("without attention, " + type, *backend, *recurrent, small, operations, 2);
    const auto loaded = LoadDecoderDirectory(*backend, directory, weights);
    if (!loaded.ok()) {
      fmt::print("{}\n", loaded.status().ToString());
      return false;
    }
    IsolationOptions demo{.longest_prompt = 150, .most_new_tokens = 16};
    demo.generator = {.max_sequences = 6,
                      .key_value_bytes = int64_t{1} << 20,  // 8 pages
                      .prefix_slots = 4,
                      .prefix_interval = 64};
    good &= Run(directory + ", " + type, *backend, *loaded->model, demo, operations / 10, 3);
  }
  return good;
}

}  // namespace
}  // namespace hippodrome

int main(int argc, char** argv) {
  const int64_t operations = argc == 3 ? std::atoll(argv[1]) : 0;
  if (operations < 1) {
    fmt::print(stderr, "usage: isolation OPERATIONS MODEL_DIR\n");
    return 2;
  }
  return hippodrome::RunAll(operations, argv[2]) ? 0 : 1;
}
