#include "engine/tasks/tagged_spans.h"

#include <algorithm>
#include <string_view>

#include "engine/tasks/label_scores.h"

namespace hippodrome {
namespace {

// A token, or a word under way to a span.
struct Tagged {
  std::vector<float> scores;  // probability of each label
  int64_t begin = 0;
  int64_t end = 0;
  int64_t token = 0;
  bool continues_word = false;

  size_t best() const { return std::max_element(scores.begin(), scores.end()) - scores.begin(); }
  float score() const { return scores[best()]; }
};

// The tokens of the text, without those that the layout added.
std::vector<Tagged> TaggedTokens(const EncodedText& input, std::span<const float> logits,
                                 size_t labels) {
  std::vector<Tagged> tokens;
  for (size_t t = 0; t < input.ids.size(); ++t) {
    if (input.sequence[t] < 0) continue;
    const WordPiece& piece = input.pieces[t];
    const bool continues = t > 0 && input.sequence[t - 1] == input.sequence[t] && piece.word >= 0 &&
                           input.pieces[t - 1].word == piece.word;
    tokens.push_back({.scores = Softmax(logits.subspan(t * labels, labels)),
                      .begin = piece.begin,
                      .end = piece.end,
                      .token = static_cast<int64_t>(t),
                      .continues_word = continues});
  }
  return tokens;
}

std::vector<float> MeanScores(std::span<const Tagged> word) {
  std::vector<float> mean(word[0].scores.size());
  for (size_t label = 0; label < mean.size(); ++label) {
    double sum = 0;
    for (const Tagged& token : word) sum += token.scores[label];
    mean[label] = static_cast<float>(sum / static_cast<double>(word.size()));
  }
  return mean;
}

const Tagged& Surest(std::span<const Tagged> word) {
  return *std::max_element(word.begin(), word.end(),
                           [](const Tagged& a, const Tagged& b) { return a.score() < b.score(); });
}

Tagged Word(std::span<const Tagged> tokens, Aggregation aggregation) {
  Tagged word = aggregation == Aggregation::kMax ? Surest(tokens) : tokens[0];
  if (aggregation == Aggregation::kAverage) word.scores = MeanScores(tokens);
  word.begin = tokens.front().begin;
  word.end = tokens.back().end;
  return word;
}

std::vector<Tagged> Words(std::span<const Tagged> tokens, Aggregation aggregation) {
  std::vector<Tagged> words;
  for (size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    end = begin + 1;
    while (end < tokens.size() && tokens[end].continues_word) ++end;
    words.push_back(Word(tokens.subspan(begin, end - begin), aggregation));
  }
  return words;
}

// A label taken apart. One without a prefix goes on where it stands beside its like, as I- does.
struct Tag {
  explicit Tag(std::string_view label) : entity(label) {
    begins = label.starts_with("B-");
    if (begins || label.starts_with("I-")) entity.remove_prefix(2);
  }

  std::string_view entity;
  bool begins = false;
};

TaggedSpan Joined(std::span<const Tagged> parts, std::string_view entity) {
  double sum = 0;
  for (const Tagged& part : parts) sum += part.score();
  return {.label = std::string(entity),
          .score = static_cast<float>(sum / static_cast<double>(parts.size())),
          .begin = parts.front().begin,
          .end = parts.back().end};
}

std::vector<TaggedSpan> Groups(std::span<const Tagged> parts,
                               const std::vector<std::string>& labels) {
  std::vector<TaggedSpan> spans;
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    const std::string_view entity = Tag(labels[parts[begin].best()]).entity;
    for (end = begin + 1; end < parts.size(); ++end) {
      const Tag next(labels[parts[end].best()]);
      if (next.begins || next.entity != entity) break;
    }
    spans.push_back(Joined(parts.subspan(begin, end - begin), entity));
  }
  return spans;
}

std::vector<TaggedSpan> SingleTokens(std::span<const Tagged> tokens,
                                     const std::vector<std::string>& labels) {
  std::vector<TaggedSpan> spans;
  for (const Tagged& token : tokens) {
    spans.push_back({.label = labels[token.best()],
                     .score = token.score(),
                     .begin = token.begin,
                     .end = token.end,
                     .token = token.token});
  }
  return spans;
}

std::vector<TaggedSpan> AllSpans(std::span<const Tagged> tokens,
                                 const std::vector<std::string>& labels, Aggregation aggregation) {
  if (aggregation == Aggregation::kNone) return SingleTokens(tokens, labels);
  if (aggregation == Aggregation::kSimple) return Groups(tokens, labels);
  return Groups(Words(tokens, aggregation), labels);
}

}  // namespace

std::vector<TaggedSpan> TaggedSpans(const EncodedText& input, std::span<const float> logits,
                                    const std::vector<std::string>& labels,
                                    Aggregation aggregation) {
  const std::vector<Tagged> tokens = TaggedTokens(input, logits, labels.size());
  std::vector<TaggedSpan> spans = AllSpans(tokens, labels, aggregation);
  std::erase_if(spans, [](const TaggedSpan& span) { return span.label == "O"; });
  return spans;
}

}  // namespace hippodrome
