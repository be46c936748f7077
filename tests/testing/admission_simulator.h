// Requests that come, wait, run and leave, without an engine: what admission does with them.
#ifndef HIPPODROME_TESTS_TESTING_ADMISSION_SIMULATOR_H_
#define HIPPODROME_TESTS_TESTING_ADMISSION_SIMULATOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/generator.h"

namespace hippodrome {

// Times are ticks of Claim.
struct SimulatedRequest {
  int64_t arrival = 0;
  int client = 0;
  int call = 0;
  Footprint needs;
  int64_t prompt_tokens = 1;
  int64_t max_tokens = 1;
  int64_t prefill_speed = 1;      // prompt tokens per tick, >= 1
  int64_t tokens = 1;             // that it makes, <= max_tokens
  std::optional<int64_t> cancel;  // when its client leaves
  bool background = false;
};

struct Workload {
  Footprint capacity;
  double max_client_share = 1;
  std::vector<SimulatedRequest> requests;  // by arrival; each fits into the capacity
};

enum class AdmissionRule {
  kFirstCome,    // in order of arrival; nobody passes
  kBackfilling,  // AdmissionLine
};

struct SimulationResult {
  std::string fault;                         // what was broken first; empty: nothing
  std::vector<std::optional<int64_t>> wait;  // of each request; nothing if it was cancelled before
  int64_t end = 0;                           // when the last one left
  int64_t overtakings = 0;                   // starts before somebody who came earlier
  double busy = 0;                           // pages in use, of those that there are, on average
};

// Few requests on a small capacity: long and short, narrow and wide, alone and in calls of many, of
// one client or of several; half of them end early, and a tenth are cancelled. `seed` names it.
Workload RandomWorkload(uint64_t seed);

// Runs a workload to its end. Faults: more in use than there is; a request that was promised room
// by a tick and had none then; a promise that moved back; a request that waits with everything
// free; a wait beyond what AdmissionLine says, of requests that are not in the background; more in
// the background than its limit, or a start there that keeps room from others.
SimulationResult Simulate(const Workload& workload, AdmissionRule rule);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_ADMISSION_SIMULATOR_H_
