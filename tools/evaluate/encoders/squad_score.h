// SQuAD's figures, as the published scripts compute them.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_SQUAD_SCORE_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_SQUAD_SCORE_H_

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tools/evaluate/metrics.h"
#include "tools/evaluate/squad_file.h"

namespace hippodrome {

struct SquadPrediction {
  std::string answer;  // empty: there is none
  // The na_prob of evaluate-v2.0.py, any number that is larger where no answer is likelier.
  double no_answer = 0;
};

// {"questions", "exact_match", "f1", "intervals"}, in percent, of one prediction for each question.
// Of version 2 also {"with_answer", "without_answer"}, the same of the questions that have one
// (HasAns) and of the others (NoAns); and "best_exact", "best_exact_thresh", "best_f1",
// "best_f1_thresh": the best that questions without an answer where no_answer is above a threshold
// would give, and that threshold.
nlohmann::json SquadReport(std::span<const SquadQuestion* const> questions,
                           std::span<const SquadPrediction> predictions, SquadVersion version);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_SQUAD_SCORE_H_
