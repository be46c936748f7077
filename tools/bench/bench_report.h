// What a benchmark measured, beside what the machine allows, and how it is said.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_REPORT_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_REPORT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "tools/bench/timing_backend.h"
#include "tools/command_line/command_line.h"
#include "tools/limits/device_ceilings.h"
#include "tools/limits/machine.h"
#include "tools/limits/model_cost.h"

namespace hippodrome {

// Rates of several rounds of the same work: the slowest, all tokens by all of the time, the
// fastest.
struct Spread {
  double least = 0;
  double mean = 0;
  double most = 0;
};

struct BenchResult {
  std::string name;    // "prefill", "decode", "fft_conv", ...
  int64_t length = 0;  // tokens or points
  int64_t batch = 1;
  std::string weights;  // WeightsName(); empty where there are none
  double rate = 0;      // requests/s that arrived; 0: they did not by themselves
  double value = 0;
  std::string unit;     // "tokens/s", "ns/point", ...
  double limit = 0;     // the best `value` that the ceilings of the same run allow; 0: none known
  double fraction = 0;  // of the limit that was reached; 0: no limit known
  double bytes_per_token = 0;          // that must be moved at least; 0: not counted
  std::optional<Spread> spread = {};   // where there were several rounds of it
  std::optional<double> to_bf16 = {};  // speed as a multiple of that with bf16 weights
  std::string bound_by = {};           // of a predicted time: what it is longest in; "DRAM"
};

// By operation, or by what bounds it: parts of a piece of work's time.
using Shares = std::map<std::string, double>;

struct BenchReport {
  Ceilings ceilings;
  std::vector<BenchResult> results;
  std::map<std::string, Shares> shares;  // by piece of work ("prefill", "decode batch 32")
};

// What was run: so many tokens at a time, and how often.
struct TimedWork {
  std::string name;  // "prefill"
  int64_t length = 0;
  int64_t batch = 1;
  double tokens = 0;
  DType weights = DType::kF32;
  Cost cost = {};
  std::vector<double> seconds = {};  // of each round
};

// Tokens per second, measured and possible: of the fastest round, and of the median one. REQUIRES:
// there were rounds.
BenchResult BestRate(const TimedWork& work, const Ceilings& ceilings);
BenchResult MedianRate(const TimedWork& work, const Ceilings& ceilings);

// Where the time of a piece of work went that took `seconds` and was timed from the last Clear().
Shares SharesOf(const TimingBackend& timing, double seconds);

// What bounds the work of a machine that is modelled, from the construction on. `machine` must
// outlive it. Of others nothing is known: empty.
class BoundShares {
 public:
  explicit BoundShares(const Machine& machine);
  Shares Get() const;
  // The largest, but for the launches; empty where there are none.
  std::string Largest() const;

 private:
  Shares Seconds() const;

  const Machine& machine_;
  Shares before_;
};

// Prints the report; with --json FILE also writes all but the shares there. `table`: for people, in
// place of a line for each result. Errors: of writing.
absl::Status WriteReport(const CommandLine& line, const std::string& machine,
                         const BenchReport& report, const std::string& table = "");

// The same as JSON, without the shares; and its text, a line for each result.
nlohmann::json ReportJson(const CommandLine& line, const std::string& machine,
                          const BenchReport& report);
std::string ReportText(const nlohmann::json& report);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_REPORT_H_
