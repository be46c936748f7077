#include "tools/evaluate/encoders/squad_score.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tools/evaluate/encoders/metric_report.h"

namespace hippodrome {
namespace {

// Of each question, in percent.
struct Scores {
  std::vector<double> exact;
  std::vector<double> f1;
};

Scores ScorePredictions(std::span<const SquadQuestion* const> questions,
                        std::span<const SquadPrediction> predictions, SquadVersion version) {
  Scores scores;
  for (size_t i = 0; i < questions.size(); ++i) {
    const AnswerScore score = ScoreAnswer(predictions[i].answer, questions[i]->answers, version);
    scores.exact.push_back(100 * score.exact);
    scores.f1.push_back(100 * score.f1);
  }
  return scores;
}

nlohmann::json ScoreReport(const Scores& scores) {
  const Metric metrics[] = {{"exact_match", MeanOfExamples(scores.exact)},
                            {"f1", MeanOfExamples(scores.f1)}};
  nlohmann::json report = MetricReport(std::ssize(scores.exact), metrics);
  report["questions"] = scores.exact.size();
  return report;
}

struct Best {
  double score = 0;  // in percent
  double threshold = 0;
};

// As find_best_thresh() of evaluate-v2.0.py: questions are answered one by one, those first whose
// no_answer is least.
class ThresholdSearch {
 public:
  ThresholdSearch(std::span<const SquadQuestion* const> questions,
                  std::span<const SquadPrediction> predictions)
      : questions_(questions), predictions_(predictions), order_(questions.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return predictions[a].no_answer < predictions[b].no_answer;
    });
  }

  // Of the questions at these places, with the score that each has.
  Best Find(std::span<const size_t> places, const std::vector<double>& scores) const {
    std::vector<double> times(order_.size());
    double sum = 0;  // when none is answered
    for (const size_t place : places) {
      ++times[place];
      sum += HasAnswer(place) ? 0 : 100;
    }
    Best best = {.score = sum};
    for (const size_t place : order_) {
      sum += times[place] * Gain(place, scores[place]);
      if (sum > best.score) best = {sum, predictions_[place].no_answer};
    }
    best.score /= static_cast<double>(places.size());
    return best;
  }

 private:
  bool HasAnswer(size_t place) const { return !questions_[place]->answers.empty(); }
  // What answering it adds.
  double Gain(size_t place, double score) const {
    if (HasAnswer(place)) return score;
    return predictions_[place].answer.empty() ? 0 : -100;
  }

  std::span<const SquadQuestion* const> questions_;
  std::span<const SquadPrediction> predictions_;
  std::vector<size_t> order_;
};

// What `name` and `name`_thresh are to the report.
void AddBest(const ThresholdSearch& search, const std::string& name,
             const std::vector<double>& scores, nlohmann::json& report) {
  const Metric metric = {
      name, [&](std::span<const size_t> places) { return search.Find(places, scores).score; }};
  report.merge_patch(MetricReport(std::ssize(scores), std::span(&metric, 1)));
  std::vector<size_t> all(scores.size());
  std::iota(all.begin(), all.end(), size_t{0});
  report[name + "_thresh"] = search.Find(all, scores).threshold;
}

}  // namespace

nlohmann::json SquadReport(std::span<const SquadQuestion* const> questions,
                           std::span<const SquadPrediction> predictions, SquadVersion version) {
  const Scores scores = ScorePredictions(questions, predictions, version);
  nlohmann::json report = ScoreReport(scores);
  if (version == SquadVersion::k1) return report;
  std::vector<size_t> with_answer;
  std::vector<size_t> without_answer;
  for (size_t i = 0; i < questions.size(); ++i) {
    (questions[i]->answers.empty() ? without_answer : with_answer).push_back(i);
  }
  const auto part = [&](std::span<const size_t> places) {
    return ScoreReport({ValuesAt(places, scores.exact), ValuesAt(places, scores.f1)});
  };
  report["with_answer"] = part(with_answer);
  report["without_answer"] = part(without_answer);
  const ThresholdSearch search(questions, predictions);
  AddBest(search, "best_exact", scores.exact, report);
  AddBest(search, "best_f1", scores.f1, report);
  return report;
}

}  // namespace hippodrome
