// What a job does with each line.
#ifndef HIPPODROME_TOOLS_BATCH_BATCH_TASK_H_
#define HIPPODROME_TOOLS_BATCH_BATCH_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/handlers/handlers.h"
#include "server/json/json_parse.h"

namespace hippodrome {

enum class BatchTask : uint8_t {
  kGenerate,
  kScore,
  kClassify,
  kEmbed,
  kFillMask,
  kTag,
  kAnswer,
};

inline constexpr char kBatchTasks[] = "generate|score|classify|embed|fill-mask|tag|answer";

// Of a name in kBatchTasks.
BatchTask ParseBatchTask(const std::string& name);

// What becomes of a line: one of the two.
struct LineAnswer {
  std::string json;
  std::vector<float> row;  // where rows are wanted
};

// The answer to a line that is not here yet. Destroying it gives up the work. `wake` and Take() are
// as of PendingAnswer.
class LineWork {
 public:
  virtual ~LineWork() = default;
  virtual void OnReady(std::function<void()> wake) = 0;
  virtual std::optional<absl::StatusOr<LineAnswer>> Take() = 0;
};

struct BegunLine {
  std::string id;  // of the line, as JSON; empty: it has none
  absl::StatusOr<std::unique_ptr<LineWork>> work;
};

struct BatchTaskOptions {
  BatchTask task = BatchTask::kClassify;
  bool rows = false;               // of kEmbed: one embedding for each line, as numbers
  Json defaults = Json::object();  // for the fields that a line does not have
  uint64_t seed = 0;               // of kGenerate: see Begin()
};

// Answers lines by one model, as the server would. Thread-safe.
class LineAnswerer {
 public:
  // `handlers` must outlive the answerer and its work. Errors: kFailedPrecondition where the model
  // cannot do the task.
  static absl::StatusOr<LineAnswerer> Make(Handlers& handlers, BatchTaskOptions options);

  // A line is a JSON object: the body of the server's path for the task (docs/batch.md), with "id",
  // a string or a number, if it likes. The random numbers of a text whose line has no seed are
  // those of the job's seed and of the bytes of the line: neither its place nor its neighbours are
  // in them. Errors are in the result: those of that path, at once or from Take().
  // kResourceExhausted: there is no room now.
  BegunLine Begin(const std::string& line) const;

 private:
  LineAnswerer(Handlers& handlers, BatchTaskOptions options)
      : handlers_(handlers), options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<LineWork>> BeginTask(const std::string& body) const;
  absl::StatusOr<std::unique_ptr<LineWork>> Generate(const std::string& body) const;
  absl::StatusOr<std::unique_ptr<LineWork>> Score(const std::string& body) const;
  absl::StatusOr<std::unique_ptr<LineWork>> Embed(const std::string& body) const;
  void AddDefaults(const std::string& line, Json& body) const;

  Handlers& handlers_;
  const BatchTaskOptions options_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BATCH_BATCH_TASK_H_
