// Asks a decoder the questions of a task.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_RUN_LM_TASK_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_RUN_LM_TASK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/lm/decoder_session.h"
#include "tools/evaluate/lm/lm_figures.h"
#include "tools/evaluate/lm/lm_question.h"
#include "tools/evaluate/lm/lm_task.h"

namespace hippodrome {

struct LmLengths {
  int64_t most = 0;    // tokens of a question and its answer, 2 or more; 0: any
  int64_t stride = 0;  // RollingWindows::stride of windows of most - 1; 0: that many
};

// What the model said to one question, for the record: {"log_probabilities": [..], "tokens": [..],
// "greedy": [..]}, with "best" and "gold" of choices, or {"text": ..}.
struct LmAnswer {
  LmOutcome outcome;
  nlohmann::ordered_json record;
};

// Called with the answers to the next questions, in order.
using LmAnswerSink = std::function<absl::Status(std::span<const LmAnswer> answers)>;

// Questions of choices and contexts of prompts that are too long lose their beginning, texts are
// read in windows. Errors name the line of the document; those of `sink` are passed on.
absl::Status RunLmTask(DecoderSession& session, const LmTask& task,
                       std::span<const LmQuestion> questions, const LmLengths& lengths,
                       const LmAnswerSink& sink);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_RUN_LM_TASK_H_
