#include "tools/evaluate/metrics.h"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "tools/evaluate/python_text.h"

namespace hippodrome {
namespace {

// How often a class was predicted and meant.
struct Counts {
  double true_positive = 0;
  double false_positive = 0;
  double false_negative = 0;
};

Counts Count(std::span<const int64_t> predictions, std::span<const int64_t> labels,
             int64_t positive) {
  Counts counts;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool predicted = predictions[i] == positive;
    const bool meant = labels[i] == positive;
    counts.true_positive += predicted && meant;
    counts.false_positive += predicted && !meant;
    counts.false_negative += !predicted && meant;
  }
  return counts;
}

double Ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

double MeanOrZero(std::span<const double> x) {
  return Ratio(std::accumulate(x.begin(), x.end(), 0.0), static_cast<double>(x.size()));
}

// 1, 2, ... in the order of the values; equal ones share the mean of theirs.
std::vector<double> Ranks(std::span<const double> x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> ranks(x.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin + 1;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

// As \w: letters and numbers; "_" was punctuation.
bool IsWordCharacter(utf8proc_int32_t c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO &&
         category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_MC &&
         category != UTF8PROC_CATEGORY_ME;
}

bool IsArticle(std::u32string_view word) { return word == U"a" || word == U"an" || word == U"the"; }

std::u32string LowerWithoutPunctuation(std::string_view text) {
  std::u32string result = PythonLower(ToCodePoints(text));
  std::erase_if(result, IsAsciiPunctuation);
  return result;
}

// Articles may stand between any characters that are no word's: "the–best" has one.
std::u32string WithoutArticles(const std::u32string& text) {
  std::u32string result;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const bool word = IsWordCharacter(static_cast<utf8proc_int32_t>(text[begin]));
    end = begin + 1;
    while (end < text.size() && IsWordCharacter(static_cast<utf8proc_int32_t>(text[end])) == word) {
      ++end;
    }
    const std::u32string part = text.substr(begin, end - begin);
    result += IsArticle(part) ? U" " : part;
  }
  return result;
}

using AnswerWordList = std::vector<std::string>;

AnswerScore Compare(const AnswerWordList& prediction, const AnswerWordList& gold,
                    SquadVersion version) {
  AnswerScore score{.exact = prediction == gold ? 1.0 : 0.0};
  if (prediction.empty() || gold.empty()) {
    return {score.exact, version == SquadVersion::k2 ? score.exact : 0};
  }
  AnswerWordList a = prediction;
  AnswerWordList b = gold;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  AnswerWordList common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  score.f1 = 2.0 * static_cast<double>(common.size()) / static_cast<double>(a.size() + b.size());
  return score;
}

}  // namespace

double Accuracy(std::span<const int64_t> predictions, std::span<const int64_t> labels) {
  double right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += predictions[i] == labels[i];
  return Ratio(right, static_cast<double>(labels.size()));
}

double F1(std::span<const int64_t> predictions, std::span<const int64_t> labels, int64_t positive) {
  const Counts c = Count(predictions, labels, positive);
  return Ratio(2 * c.true_positive, 2 * c.true_positive + c.false_positive + c.false_negative);
}

double MacroF1(std::span<const int64_t> predictions, std::span<const int64_t> labels,
               int64_t classes) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += F1(predictions, labels, k);
  return Ratio(sum, static_cast<double>(classes));
}

double MatthewsCorrelation(std::span<const int64_t> predictions, std::span<const int64_t> labels) {
  std::vector<double> predicted;  // of each class, how often it was so
  std::vector<double> meant;
  double right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto classes = static_cast<size_t>(std::max(predictions[i], labels[i])) + 1;
    predicted.resize(std::max(predicted.size(), classes));
    meant.resize(predicted.size());
    ++predicted[predictions[i]];
    ++meant[labels[i]];
    right += predictions[i] == labels[i];
  }
  const auto product = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  const auto all = static_cast<double>(labels.size());
  return Ratio(
      all * right - product(predicted, meant),
      std::sqrt((all * all - product(predicted, predicted)) * (all * all - product(meant, meant))));
}

double Pearson(std::span<const double> x, std::span<const double> y) {
  const double mean_x = MeanOrZero(x);
  const double mean_y = MeanOrZero(y);
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return Ratio(xy, std::sqrt(xx) * std::sqrt(yy));
}

double Spearman(std::span<const double> x, std::span<const double> y) {
  return Pearson(Ranks(x), Ranks(y));
}

std::vector<std::string> AnswerWords(std::string_view answer) {
  std::vector<std::string> words;
  for (const std::u32string& word : PythonWords(WithoutArticles(LowerWithoutPunctuation(answer)))) {
    words.push_back(ToUtf8(word));
  }
  return words;
}

AnswerScore ScoreAnswer(std::string_view prediction, std::span<const std::string> gold,
                        SquadVersion version) {
  const AnswerWordList words = AnswerWords(prediction);
  std::vector<AnswerWordList> answers;
  for (const std::string& answer : gold) answers.push_back(AnswerWords(answer));
  if (version == SquadVersion::k2) {
    std::erase_if(answers, [](const AnswerWordList& answer) { return answer.empty(); });
  }
  if (answers.empty()) answers.emplace_back();
  AnswerScore best;
  for (const AnswerWordList& answer : answers) {
    const AnswerScore score = Compare(words, answer, version);
    best = {std::max(best.exact, score.exact), std::max(best.f1, score.f1)};
  }
  return best;
}

}  // namespace hippodrome
