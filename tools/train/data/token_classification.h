// Token classification: sentences whose words have tags.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_TOKEN_CLASSIFICATION_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_TOKEN_CLASSIFICATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/wordpiece.h"
#include "tools/train/data/batch_sampler.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

// Views into the file's text.
struct TaggedWord {
  int64_t line = 0;
  std::string_view word;
  std::string_view tag;
};
using TaggedSentence = std::vector<TaggedWord>;

// "word<TAB>tag" in each line, an empty line between sentences. `text` must outlive the result.
// Errors: kInvalidArgument with the line at fault, or when there are no sentences.
absl::StatusOr<std::vector<TaggedSentence>> ReadTaggedSentences(std::string_view text);

// The different tags, sorted.
std::vector<std::string> TagsOf(const std::vector<TaggedSentence>& sentences);

// Sentences are laid out as [CLS] words [SEP], cut to `length` tokens and padded to them. The first
// piece of a word has the label, its tag's place in `tags`; all other tokens have -1. Errors:
// kInvalidArgument for a tag that is not among them, with its line, a length below 3, and when
// there are too few sentences for a batch.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeTokenClassification(
    const std::vector<TaggedSentence>& sentences, const std::vector<std::string>& tags,
    const WordPieceTokenizer& tokenizer, int64_t length, const BatchOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_TOKEN_CLASSIFICATION_H_
