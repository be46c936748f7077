#include "tools/train/data/token_classification.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/tokenizer/encode_pair.h"
#include "tools/train/data/encoded_examples.h"

namespace hippodrome {
namespace {

absl::StatusOr<TaggedWord> ReadWord(int64_t number, std::string_view line) {
  const size_t tab = line.find('\t');
  if (tab != 0 && tab != line.npos && tab + 1 < line.size() &&
      line.find('\t', tab + 1) == line.npos) {
    return TaggedWord{number, line.substr(0, tab), line.substr(tab + 1)};
  }
  return InvalidArgument("line " + std::to_string(number) + ": '" + OneLine(line) +
                         "', expected a word, a tab and a tag");
}

absl::StatusOr<int32_t> LabelOf(const TaggedWord& word, const std::vector<std::string>& tags) {
  const auto found = std::find(tags.begin(), tags.end(), word.tag);
  if (found != tags.end()) return static_cast<int32_t>(found - tags.begin());
  return InvalidArgument("line " + std::to_string(word.line) + ": the tag is '" +
                         OneLine(word.tag) + "', which is none of the " +
                         std::to_string(tags.size()) + " tags of the model");
}

absl::StatusOr<EncodedExample> EncodeSentence(const TaggedSentence& sentence,
                                              const std::vector<std::string>& tags,
                                              const WordPieceTokenizer& tokenizer, int64_t length) {
  std::vector<WordPiece> pieces;
  std::vector<int32_t> labels = {-1};  // of [CLS]
  for (const TaggedWord& word : sentence) {
    HIPPODROME_ASSIGN_OR_RETURN(const int32_t label, LabelOf(word, tags));
    const std::vector<WordPiece> parts = tokenizer.Tokenize(word.word);
    if (parts.empty()) continue;
    pieces.insert(pieces.end(), parts.begin(), parts.end());
    labels.push_back(label);
    labels.resize(labels.size() + parts.size() - 1, -1);
  }
  EncodedText text = EncodePair(tokenizer, pieces, {}, false, length, Truncation::kLongestFirst);
  labels.resize(text.ids.size(), -1);
  labels.back() = -1;  // of [SEP]
  return EncodedExample{
      .ids = std::move(text.ids), .types = std::move(text.types), .labels = std::move(labels)};
}

}  // namespace

absl::StatusOr<std::vector<TaggedSentence>> ReadTaggedSentences(std::string_view text) {
  std::vector<TaggedSentence> sentences;
  bool between = true;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      between = true;
      continue;
    }
    HIPPODROME_ASSIGN_OR_RETURN(const TaggedWord word, ReadWord(number, line));
    if (between) sentences.emplace_back();
    between = false;
    sentences.back().push_back(word);
  }
  if (sentences.empty()) return InvalidArgument("there are no sentences");
  return sentences;
}

std::vector<std::string> TagsOf(const std::vector<TaggedSentence>& sentences) {
  std::set<std::string> tags;
  for (const TaggedSentence& sentence : sentences) {
    for (const TaggedWord& word : sentence) tags.emplace(word.tag);
  }
  return {tags.begin(), tags.end()};
}

absl::StatusOr<std::unique_ptr<TrainingData>> MakeTokenClassification(
    const std::vector<TaggedSentence>& sentences, const std::vector<std::string>& tags,
    const WordPieceTokenizer& tokenizer, int64_t length, const BatchOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(EncodedExamples data, NoExamples(tokenizer, length, length));
  for (const TaggedSentence& sentence : sentences) {
    HIPPODROME_ASSIGN_OR_RETURN(EncodedExample example,
                                EncodeSentence(sentence, tags, tokenizer, length));
    data.examples.push_back(std::move(example));
  }
  return MakeEncodedData(std::move(data), options);
}

}  // namespace hippodrome
