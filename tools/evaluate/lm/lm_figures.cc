#include "tools/evaluate/lm/lm_figures.h"

#include <algorithm>
#include <cmath>

#include "tools/evaluate/metrics.h"

namespace hippodrome {
namespace {

// What a figure adds up over documents.
using Column = std::vector<double>;

template <typename Get>
Column ColumnOf(std::span<const LmOutcome> outcomes, const Get& get) {
  Column column;
  column.reserve(outcomes.size());
  for (const LmOutcome& outcome : outcomes) column.push_back(static_cast<double>(get(outcome)));
  return column;
}

double Sum(const Column& column, std::span<const size_t> places) {
  double sum = 0;
  for (const size_t i : places) sum += column[i];
  return sum;
}

FigureOf MeanOf(Column column) {
  return [column = std::move(column)](std::span<const size_t> places) {
    return Sum(column, places) / static_cast<double>(places.size());
  };
}

// The mean of F1 over all classes.
FigureOf F1OfClasses(std::span<const LmOutcome> outcomes) {
  std::vector<int64_t> gold;
  std::vector<int64_t> best;
  int64_t classes = 0;
  for (const LmOutcome& outcome : outcomes) {
    classes = std::max(classes, outcome.choices);
    gold.push_back(outcome.gold);
    best.push_back(outcome.best);
  }
  return [=](std::span<const size_t> places) {
    std::vector<int64_t> labels;
    std::vector<int64_t> predictions;
    for (const size_t i : places) {
      labels.push_back(gold[i]);
      predictions.push_back(best[i]);
    }
    return MacroF1(predictions, labels, classes);
  };
}

// The information of all log probabilities for each of what is counted, in nats.
FigureOf NatsPer(std::span<const LmOutcome> outcomes, int64_t LmOutcome::* counted) {
  Column logs = ColumnOf(outcomes, [](const LmOutcome& o) { return o.log_probability; });
  Column counts = ColumnOf(outcomes, [&](const LmOutcome& o) { return o.*counted; });
  return [logs = std::move(logs), counts = std::move(counts)](std::span<const size_t> places) {
    return -Sum(logs, places) / Sum(counts, places);
  };
}

FigureOf Exponential(FigureOf figure) {
  return [figure = std::move(figure)](std::span<const size_t> places) {
    return std::exp(figure(places));
  };
}

}  // namespace

const std::vector<std::string>& LmMetrics(LmTaskKind kind) {
  static const std::vector<std::string> kChoices = {
      "acc", "acc_norm", "acc_bytes", "acc_tokens", "acc_mutual_info", "f1", "em"};
  static const std::vector<std::string> kContinuation = {"acc", "perplexity"};
  static const std::vector<std::string> kRolling = {"word_perplexity", "byte_perplexity",
                                                    "token_perplexity", "bits_per_byte"};
  static const std::vector<std::string> kGeneration = {"exact_match"};
  switch (kind) {
    case LmTaskKind::kChoices:
      return kChoices;
    case LmTaskKind::kContinuation:
      return kContinuation;
    case LmTaskKind::kRolling:
      return kRolling;
    case LmTaskKind::kGeneration:
      break;
  }
  return kGeneration;
}

FigureOf LmFigure(const std::string& metric, std::span<const LmOutcome> outcomes) {
  if (!outcomes.empty() && outcomes.front().means.contains(metric)) {
    return MeanOf(ColumnOf(outcomes, [&](const LmOutcome& o) { return o.means.at(metric); }));
  }
  if (metric == "f1") return F1OfClasses(outcomes);
  if (metric == "word_perplexity") return Exponential(NatsPer(outcomes, &LmOutcome::words));
  if (metric == "byte_perplexity") return Exponential(NatsPer(outcomes, &LmOutcome::bytes));
  if (metric == "token_perplexity") return Exponential(NatsPer(outcomes, &LmOutcome::tokens));
  if (metric == "bits_per_byte") {
    return [nats = NatsPer(outcomes, &LmOutcome::bytes)](std::span<const size_t> places) {
      return nats(places) / std::log(2.0);
    };
  }
  return Exponential(
      MeanOf(ColumnOf(outcomes, [](const LmOutcome& o) { return -o.log_probability; })));
}

}  // namespace hippodrome
