// The figures of tasks, as lm-evaluation-harness defines and calls them.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_LM_FIGURES_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_LM_FIGURES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/evaluate/interval.h"
#include "tools/evaluate/lm/lm_task.h"

namespace hippodrome {

// What came of one document.
struct LmOutcome {
  std::string group;                    // LmTask::by; empty without
  std::map<std::string, double> means;  // of figures that are means over documents
  // Of choices: the right one, the likeliest one, and how many there are.
  int64_t gold = 0;
  int64_t best = 0;
  int64_t choices = 0;
  // Of continuations and texts.
  double log_probability = 0;
  int64_t words = 0;
  int64_t bytes = 0;
  int64_t tokens = 0;
};

// The metrics that tasks of a kind may have:
//   choices       acc: the share of documents whose likeliest choice, by the sum of the log
//                 probabilities of its tokens, is the right one. Also by that sum for each
//                 character of the choice (acc_norm), byte (acc_bytes), token (acc_tokens), and
//                 less that of the choice without a context (acc_mutual_info). f1: the mean of F1
//                 over classes; with answers, of the words of the likeliest choice; em, in which it
//                 must be the same.
//   continuation  acc: the share in which every token is one of the likeliest; perplexity:
//                 exp(-mean of the log probabilities of continuations).
//   rolling       word_perplexity, byte_perplexity, token_perplexity: exp(-sum of log probabilities
//                 / sum of words, bytes or tokens); bits_per_byte: log2(byte_perplexity).
//   generation    exact_match: the share of texts that are one of the answers, spaces around them
//                 apart.
const std::vector<std::string>& LmMetrics(LmTaskKind kind);

// The figure of some of `outcomes`, which it copies what it needs of. REQUIRES: a metric of the
// outcomes' task.
FigureOf LmFigure(const std::string& metric, std::span<const LmOutcome> outcomes);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_LM_FIGURES_H_
