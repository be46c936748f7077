// A model's answers to the questions of SQuAD.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_ANSWER_SQUAD_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_ANSWER_SQUAD_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/squad_score.h"
#include "tools/evaluate/metrics.h"
#include "tools/evaluate/squad_file.h"

namespace hippodrome {

struct SquadAnswers {
  SquadVersion version = SquadVersion::k1;
  std::vector<const SquadQuestion*> questions;  // in the order of the file
  std::vector<SquadPrediction> predictions;     // of each
  size_t windows = 0;                           // that were read
  int64_t too_long = 0;  // questions that leave no room for a context and stay without an answer
};

// The answers to all questions of `file`, which must outlive them. Paragraphs are read in windows
// of what the model takes. Errors: as of EncoderSession::Run().
absl::StatusOr<SquadAnswers> AnswerSquad(EncoderSession& session, const SquadFile& file);

// Their report.
nlohmann::json SquadReport(const EncoderSession& session, const SquadAnswers& answers);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_ANSWER_SQUAD_H_
