// Documents and sentences of a text.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_SPLIT_TEXT_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_SPLIT_TEXT_H_

#include <string_view>
#include <vector>

namespace hippodrome {

// The parts between the markers "<|endoftext|>"; those of nothing but white space are left out.
std::vector<std::string_view> SplitDocuments(std::string_view text);

// A sentence ends at an empty line, and where white space follows one of .!? with any closing
// quotation marks and brackets behind it. So it may end too early ("Mr. Knightley"), and goes on at
// the end of a line. White space round it is dropped; none is empty.
std::vector<std::string_view> SplitSentences(std::string_view document);

// Parts that together are `text`, each of about `size` bytes or more, cut only where GPT-2's words
// are the same with and without the cut: behind a line feed with visible ASCII on both sides.
std::vector<std::string_view> SplitBetweenWords(std::string_view text, size_t size);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_SPLIT_TEXT_H_
