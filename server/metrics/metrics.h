// Everything that /metrics shows.
#ifndef HIPPODROME_SERVER_METRICS_METRICS_H_
#define HIPPODROME_SERVER_METRICS_METRICS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generator.h"
#include "hippodrome/v1/models.pb.h"

namespace hippodrome {

class MetricRegistry;

enum class Api : uint8_t { kHttp, kGrpc };
enum class Phase : uint8_t { kQueue, kPrefill, kDecode };
// Why a request failed: its client has no right to it, left, asked for what cannot be, or set a
// deadline that passed; the server has no room now, or broke.
enum class FailureReason : uint8_t {
  kNone,
  kOverloaded,
  kValidation,
  kDeadline,
  kCancelled,
  kInternal,
  kAuth,
  kLimit  // of the client's own
};

const char* Name(Api api);

// In place of a route: of a request that was refused before one was looked for, and of one whose
// path no route has.
constexpr char kNoRoute[] = "none";
constexpr char kOtherRoute[] = "other";

// Calls that wait for a model: those that somebody waits for, and others (Caller).
struct QueuedRequests {
  int64_t interactive = 0;
  int64_t background = 0;
};

// The series of one model. Counters and histograms go on where an earlier model of that name ended;
// what gauges say of this one ends with it. Thread-safe.
class ModelMetrics {
 public:
  using Duration = std::chrono::duration<double>;

  ModelMetrics(MetricRegistry& registry, const std::string& model);
  ~ModelMetrics();

  // What is not there of durations is not measured: nobody waited.
  void Admitted(Api api, std::optional<Duration> queued, int64_t prompt_tokens);
  void Tokenized(Api api, Duration duration) const;
  void FirstToken(Api api, std::optional<Duration> since_submit, Duration since_admission);
  void NextToken(Api api, Duration since_last);
  // `tokens`: that were generated.
  void Finished(Api api, std::optional<Duration> since_submit, Duration since_first_token,
                int64_t tokens);
  void Generated(int64_t tokens);
  // Tokens of which the client gets log probabilities.
  void Scored(int64_t tokens);
  void Cancelled(Phase where);
  // A request that left with its state, for another server to go on.
  void Migrated();
  // Until what a cancelled request held was free.
  void Freed(Duration since_cancelled);
  // A request for which the model computed a value that is not a number.
  void NotANumber();
  // reason: one of those of AnnounceRejections().
  void Rejected(const std::string& reason);
  // `sequences`: that decoded, which may be beside a prefill too.
  void EngineStep(Phase phase, Duration duration, int64_t sequences);
  void SetLoad(const QueuedRequests& queued, int64_t prefilling, int64_t decoding);
  // `slot_bytes` of each used slot are recurrent state; the other bytes are key/value pages.
  void SetState(const Footprint& used, const Footprint& capacity, int64_t slot_bytes);
  // What the tree of prefixes holds, and did since the model was loaded. Of one thread.
  void SetPrefixes(const PrefixCounts& counts);
  // What speculation did since the model was loaded. Of one thread.
  void SetDrafts(const DraftCounts& counts);
  // Reserved for log probabilities.
  void SetScoreBytes(int64_t bytes);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

// 100 us to 419 s, doubling: a small model on a processor and a large prompt both resolve.
std::vector<double> DefaultLatencyBuckets();

// The registry. Thread-safe; reading it takes no part in serving.
class Metrics {
 public:
  // `latency_buckets`: the upper bounds of the buckets of all histograms of seconds, ascending.
  explicit Metrics(std::vector<double> latency_buckets = DefaultLatencyBuckets());
  ~Metrics();

  // Where ModelMetrics register; lives as long as this object.
  MetricRegistry& registry() { return *registry_; }
  // Announces what a model is, hippodrome_model_info{model, arch, dtype, params} = 1, in the place
  // of what was said of an earlier one of its name.
  void SetModelInfo(const v1::Model& model);
  // There is no model of that name any more.
  void RemoveModelInfo(const std::string& name);
  // One answered request. `route` is from a fixed list; `code` as the transport says it.
  void CountRequest(Api api, std::string_view route, std::string_view model, std::string_view code);
  // Shows such requests as 0 until there are some: a rate needs a first value.
  void AnnounceRequest(Api api, std::string_view route, std::string_view model,
                       std::string_view code);
  // One answered request over HTTP, with the bytes of the bodies.
  void MeasureHttp(std::string_view route, std::chrono::duration<double> duration, int64_t received,
                   int64_t sent);
  // Clients that are getting an answer as a stream.
  void CountStreams(int64_t more);
  // One failed request; kNone: none.
  void CountFailure(FailureReason reason);
  // Requests that a drain did not wait for.
  void CountCut(int64_t requests);
  // The text exposition format.
  std::string Text() const;

 private:
  struct Families;
  std::unique_ptr<MetricRegistry> registry_;
  std::unique_ptr<Families> families_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_METRICS_METRICS_H_
