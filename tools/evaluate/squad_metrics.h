// How SQuAD compares answers.
#ifndef HIPPODROME_TOOLS_EVALUATE_SQUAD_METRICS_H_
#define HIPPODROME_TOOLS_EVALUATE_SQUAD_METRICS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hippodrome {

// The words of an answer as the published script leaves them: in lower case, without ASCII
// punctuation, without "a", "an" and "the", split at white space. What is not UTF-8 is dropped.
std::vector<std::string> AnswerWords(std::string_view answer);

struct AnswerScore {
  double exact = 0;  // 1 where the words are the same, else 0
  double f1 = 0;     // of the words as bags: 2 common / (both); `exact` where one has none
};

// The best of each over the gold answers. Those without words count only where all are so; without
// any, the right answer is the empty one.
AnswerScore ScoreAnswer(std::string_view prediction, std::span<const std::string> gold);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_SQUAD_METRICS_H_
