// Many tenants on one generator, in random patterns, and what each says alone.
#ifndef HIPPODROME_TESTS_TESTING_ISOLATION_H_
#define HIPPODROME_TESTS_TESTING_ISOLATION_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/generator.h"

namespace hippodrome {

struct IsolationOptions {
  int64_t tenants = 4;           // each has a salt of its own
  int64_t requests = 6;          // of a tenant, of different lengths; many begin alike
  int64_t longest_prompt = 200;  // tokens
  int64_t most_new_tokens = 24;  // of a request
  // Few, so that all are used again soon: of TinyConfig(), twice the pages of the longest request.
  GeneratorOptions generator{
      .max_sequences = 5, .key_value_bytes = 8 * 16384, .prefix_slots = 4, .prefix_interval = 64};
  bool saves = true;  // sequences, to go on from what was saved
  // Of log probabilities: on devices bits depend on where a prompt is cut.
  float tolerance = 0;
};

// What was done, and the first thing that was wrong.
struct IsolationResult {
  int64_t admitted = 0;
  int64_t refused = 0;    // there was no room
  int64_t cancelled = 0;  // before the prompt, within it, or between tokens
  int64_t finished = 0;
  int64_t saved = 0;      // between tokens, and admitted again as they were
  int64_t followers = 0;  // whose prompt another one took in
  int64_t beside = 0;     // steps in the pass of somebody's prompt
  int64_t hits = 0;       // prompts that began with a state of the tree
  int64_t evicted = 0;    // of those states
  int64_t tokens = 0;     // each the one that its request has alone
  int64_t accepted = 0;   // of these, those that were drafted
  int64_t scored = 0;  // tokens of prompts whose log probabilities are those that they have alone
  int64_t freed_slots = 0;  // filled with NaN
  int64_t freed_pages = 0;
  std::string fault;  // empty: none
};

// Of prompts that the CPU transforms at their beginnings, of up to three chunks.
inline IsolationOptions LongPrompts() {
  IsolationOptions options{.longest_prompt = 1200, .most_new_tokens = 6};
  options.generator = {
      .max_sequences = 5, .key_value_bytes = 40 * 16384, .prefix_slots = 6, .prefix_interval = 128};
  return options;
}

// Admits, cancels, saves and goes on, takes prompts in by pieces, steps, scores and finishes in an
// order drawn from `seed`, `operations` times, while all that is free holds NaN; in the end, the
// tree emptied, nothing is held. What each request says alone is found with a generator of its own,
// without NaN. `backend`: that of MakeTestBackend().
IsolationResult RunIsolation(Backend& backend, const HybridH3& model,
                             const IsolationOptions& options, int64_t operations, uint32_t seed);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_ISOLATION_H_
