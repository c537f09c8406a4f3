#include "autograd/print.h"

#include <cmath>
#include <cstdio>

#include "autograd/meta.h"
#include "gen/ops.h"

namespace flambeau {

namespace {

// A column of floats turns to scientific notation beyond these.
constexpr double kRatio = 1000.0, kLarge = 1.0e8, kSmall = 1.0e-4;

std::string printed(const char* format, int64_t digits, double x) {
  if (std::isnan(x)) return "nan";
  char text[512];  // of the largest number with up to 200 digits behind the point
  const int n = std::snprintf(text, sizeof text, format, static_cast<int>(digits), x);
  if (n < static_cast<int>(sizeof text)) return text;
  std::string longer(static_cast<size_t>(n) + 1, '\0');
  std::snprintf(longer.data(), longer.size(), format, static_cast<int>(digits), x);
  longer.pop_back();
  return longer;
}

// One notation for all numbers of a tensor: all get the same width and number of digits.
class Column {
 public:
  Column(const std::vector<double>& values, const PrintOptions& options)
      : digits_(options.precision) {
    double least = INFINITY, most = 0;
    bool fraction = false;
    for (double v : values) {
      if (v == 0 || !std::isfinite(v)) continue;
      least = std::min(least, std::abs(v)), most = std::max(most, std::abs(v));
      fraction |= v != std::ceil(v);
    }
    if (most == 0) return;
    const bool wide = most / least > kRatio || most > kLarge || least < kSmall;
    if (options.scientific.value_or(wide))
      format_ = "%.*e";
    else if (fraction)
      format_ = "%.*f";
    for (double v : values)
      if (v != 0 && std::isfinite(v)) width_ = std::max(width_, text(v).size());
  }
  size_t width() const { return width_; }
  std::string operator()(double x) const {
    std::string t = text(x);
    return t.size() < width_ ? std::string(width_ - t.size(), ' ') + t : t;
  }

 private:
  // Without a format of its own a float keeps its point, to tell it from an int.
  std::string text(double x) const {
    if (format_) return printed(format_, digits_, x);
    return printed("%.*f", 0, x) + (std::isfinite(x) ? "." : "");
  }

  const char* format_ = nullptr;
  int64_t digits_;
  size_t width_ = 1;
};

struct Words {
  std::vector<std::string> words;
  int64_t width = 1;
};

template <class T>
Words words_of(const T* data, size_t n, const PrintOptions& options) {
  Words out;
  if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    std::vector<double> re, im;
    for (size_t i = 0; i < n; ++i) re.push_back(data[i].real()), im.push_back(data[i].imag());
    const Column real(re, options), imag(im, options);
    for (size_t i = 0; i < n; ++i) {
      std::string part = imag(im[i]);
      part = part.substr(part.find_first_not_of(' ')) + "j";
      out.words.push_back(real(re[i]) + (part[0] == '-' ? "" : "+") + part);
    }
    out.width = static_cast<int64_t>(real.width() + imag.width() + 1);
  } else if constexpr (is_whole<T>) {
    for (size_t i = 0; i < n; ++i) {
      std::string word = is_truth<T> ? (data[i] ? "True" : "False") : std::to_string(data[i]);
      out.width = std::max(out.width, static_cast<int64_t>(word.size()));
      out.words.push_back(std::move(word));
    }
    for (auto& w : out.words) w.insert(0, static_cast<size_t>(out.width) - w.size(), ' ');
  } else {
    std::vector<double> values(data, data + n);
    const Column column(values, options);
    for (double v : values) out.words.push_back(column(v));
    out.width = static_cast<int64_t>(column.width());
  }
  return out;
}

// Brackets around the words of the dims from `d` on; `shortened`: dims whose middle is left out.
class Brackets {
 public:
  Brackets(const Ints& sizes, std::vector<bool> shortened, const Words& words,
           const PrintOptions& options)
      : sizes_(sizes), shortened_(std::move(shortened)), words_(words), options_(options) {}

  std::string text(size_t d, int64_t indent) {
    if (d == sizes_.size()) return words_.words[next_++];
    const bool last = d + 1 == sizes_.size();
    std::vector<std::string> parts;
    for (int64_t i = 0; i < sizes_[d]; ++i) {
      if (shortened_[d] && i == sizes_[d] / 2) parts.push_back(last ? " ..." : "...");
      parts.push_back(text(d + 1, indent + 1));
    }
    const std::string margin(static_cast<size_t>(indent + 1), ' ');
    if (!last) {
      const std::string lines(sizes_.size() - d - 1, '\n');
      return "[" + joined(parts, 0, parts.size(), "," + lines + margin) + "]";
    }
    const auto per_line = static_cast<size_t>(
        std::max<int64_t>(1, (options_.linewidth - indent) / (words_.width + 2)));
    std::vector<std::string> lines;
    for (size_t i = 0; i < parts.size(); i += per_line)
      lines.push_back(joined(parts, i, std::min(parts.size(), i + per_line), ", "));
    return "[" + joined(lines, 0, lines.size(), ",\n" + margin) + "]";
  }

 private:
  static std::string joined(const std::vector<std::string>& parts, size_t from, size_t to,
                            const std::string& separator) {
    std::string out;
    for (size_t i = from; i < to; ++i) out += (i > from ? separator : "") + parts[i];
    return out;
  }

  const Ints& sizes_;
  std::vector<bool> shortened_;
  const Words& words_;
  const PrintOptions& options_;
  size_t next_ = 0;
};

bool goes_without_saying(DType d) {
  if (is_complex(d)) return d == to_complex(default_dtype());
  return d == default_dtype() || d == DType::Int64 || d == DType::Bool;
}

std::string size_text(const Ints& sizes) {
  std::string out = "size=(";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + (sizes.size() == 1 ? ",)" : ")");
}

std::vector<std::string> suffixes(const Tensor& x, const PrintOptions& options) {
  std::vector<std::string> words;
  const bool meta = x.device().is_meta();
  const std::string dtype = std::string("dtype=torch.") + dtype_name(x.dtype());
  if (!x.device().is_cpu()) words.push_back("device='" + x.device().str() + "'");
  if (meta || x.numel() == 0) {
    if (meta || x.dim() != 1) words.push_back(size_text(x.sizes()));
    if (x.dtype() != default_dtype()) words.push_back(dtype);
  } else {
    if (!options.edgeitems) words.push_back(size_text(x.sizes()));
    if (!goes_without_saying(x.dtype())) words.push_back(dtype);
  }
  Ref<Node> node;
  try {
    node = grad_fn(x);
  } catch (const Error&) {
    // Asking may have to rebuild the history of a view that was changed in place where gradients
    // were off, which is an error; printing is not the place to report it.
    words.push_back("grad_fn=<Invalid>");
    return words;
  }
  if (node) {
    const std::string name = node->name();
    const size_t colon = name.rfind("::");
    words.push_back("grad_fn=<" + (colon == std::string::npos ? name : name.substr(colon + 2)) +
                    ">");
  } else if (requires_grad(x)) {
    words.push_back("requires_grad=True");
  }
  return words;
}

}  // namespace

std::string values_text(const Tensor& given, int64_t indent, const PrintOptions& options) {
  FB_CHECK_VALUE(options.precision <= 1'000'000, "print: expected at most a million digits, got ",
                 options.precision);
  if (given.numel() == 0) return "[]";
  NoGradGuard no_grad;
  NoAutocastGuard no_autocast;
  Tensor x = detach(given);
  std::vector<bool> shortened(static_cast<size_t>(x.dim()));
  if (static_cast<double>(x.numel()) > options.threshold && x.dim()) {
    if (!options.edgeitems) return "[...]";
    for (int64_t d = 0; d < x.dim(); ++d) {
      const int64_t n = options.edgeitems, size = x.sizes()[d];
      if (size / 2 < n || size <= 2 * n) continue;
      shortened[d] = true;
      x = ops::cat({ops::narrow(x, d, 0, n), ops::narrow(x, d, size - n, n)}, d);
    }
  }
  x = ops::contiguous(x, MemoryFormat::Contiguous);
  const Words words = visit(x.dtype(), [&]<class T>() {
    return words_of(x.data<T>(), static_cast<size_t>(x.numel()), options);
  });
  return Brackets(x.sizes(), std::move(shortened), words, options).text(0, indent);
}

std::string tensor_text(const Tensor& x, const PrintOptions& options) {
  if (!x.defined()) return "[ Tensor (undefined) ]";
  const std::string prefix = "tensor(";
  const auto indent = static_cast<int64_t>(prefix.size());
  std::string text = prefix;
  text += x.device().is_meta() || x.has_flag(kWrapper) ? "..." : values_text(x, indent, options);
  const size_t line = text.rfind('\n');
  const size_t begin = line == std::string::npos ? 0 : line + 1;
  auto column = static_cast<int64_t>(text.size() - begin) + 2;
  for (const std::string& word : suffixes(x, options)) {
    const auto size = static_cast<int64_t>(word.size());
    if (column + size + 2 > options.linewidth) {
      text += ",\n" + std::string(prefix.size(), ' ') + word;
      column = indent + size;
    } else {
      text += ", " + word;
      column += size + 2;
    }
  }
  return text + ")";
}

}  // namespace flambeau
