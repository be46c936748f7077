// The work behind one call of /v1/completions.
#ifndef HIPPODROME_SERVER_HTTP_COMPLETION_WORK_H_
#define HIPPODROME_SERVER_HTTP_COMPLETION_WORK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/batching/generation_batcher.h"
#include "server/batching/token_stream.h"
#include "server/http/http_types.h"
#include "server/json/json_responses.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

// One generation per prompt, answered as one JSON body or as server-sent events.
class CompletionWork : public HttpWork {
 public:
  struct Format {
    bool stream = false;
    bool include_usage = false;
  };

  // `metrics` must outlive the work.
  CompletionWork(std::vector<std::unique_ptr<Generation>> generations, CompletionHead head,
                 Format format, Metrics& metrics);
  ~CompletionWork() override;

  void OnUpdate(std::function<void()> wake) override;
  bool Advance(HttpResponse& response) override;

 private:
  // Whether the response is complete, or the error that it becomes.
  absl::StatusOr<bool> Progress(HttpResponse& response);
  // Adds the next update of choice `i` to `response`; false when there is none.
  bool Collect(size_t i, HttpResponse& response);
  void Fail(const absl::Status& status, HttpResponse& response);
  void Complete(HttpResponse& response);

  std::vector<std::unique_ptr<Generation>> generations_;  // null once finished
  std::vector<StreamUpdate> choices_;  // text and tokens are kept only where not streamed
  const CompletionHead head_;
  const Format format_;
  Metrics& metrics_;
  size_t unfinished_;
  absl::Status failure_;
  bool counted_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_COMPLETION_WORK_H_
