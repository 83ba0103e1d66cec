#include "border.h"

#include <cctype>
#include <cstring>

namespace border {

std::vector<const Kernel*>& published() {
    static std::vector<const Kernel*> kernels;
    return kernels;
}

namespace {

constexpr int MOST_PLACES = 40, MOST_SYMBOLS = 16;

// Reads declarations; a wrong one ends the import of the module, so every mistake shows at once.
class Parser {
  public:
    Parser(const char* text, std::vector<std::string>& symbols) : at_(text), symbols_(symbols) {}

    std::string word() {
        std::string found;
        while (std::isalnum(static_cast<unsigned char>(*at_)) || *at_ == '_') found += *at_++;
        if (found.empty()) fail("a name is missing");
        return found;
    }
    std::vector<Item> list() {
        std::vector<Item> items;
        expect('(');
        while (!take(")")) {
            items.push_back(item());
            if (*at_ != ')') expect(',');
            while (*at_ == ' ') ++at_;
        }
        return items;
    }

  private:
    Item item() {
        Item item;
        item.name = word();
        if (*at_ == '(') {
            item.items = list();
            return item;
        }
        if (take("[")) {
            do item.lengths.push_back(length());
            while (take(","));
            expect(']');
        }
        item.optional = take("?");
        if (take("<")) {
            item.indexes = true;
            item.below = length();
            item.minus_one = take("|-1");
        }
        return item;
    }
    Length length() {
        Length length;
        if (take("*")) {
            length.any = true;
            return length;
        }
        if (std::isdigit(static_cast<unsigned char>(*at_))) length.times = number();
        if (std::isalpha(static_cast<unsigned char>(*at_))) {
            length.symbol = symbol(std::string(1, *at_++));
            if (take("+")) length.plus = number();
            else if (*at_ == '-' && std::isdigit(static_cast<unsigned char>(at_[1]))) ++at_, length.plus = -number();
        } else {
            length.plus = length.times;
        }
        length.open = take("..");
        return length;
    }
    i64 number() {
        i64 value = 0;
        while (std::isdigit(static_cast<unsigned char>(*at_))) value = 10 * value + (*at_++ - '0');
        return value;
    }
    int symbol(const std::string& letter) {
        for (std::size_t s = 0; s < symbols_.size(); ++s)
            if (symbols_[s] == letter) return static_cast<int>(s);
        if (symbols_.size() == MOST_SYMBOLS) fail("too many letters");
        symbols_.push_back(letter);
        return static_cast<int>(symbols_.size()) - 1;
    }
    bool take(const char* what) {
        const std::size_t size = std::strlen(what);
        if (std::strncmp(at_, what, size) != 0) return false;
        at_ += size;
        return true;
    }
    void expect(char what) {
        if (*at_++ != what) fail("something else is expected");
    }
    [[noreturn]] void fail(const char* what) {
        throw std::invalid_argument(std::string("kernel declared wrongly: ") + what + " before \"" + at_ + "\"");
    }

    const char* at_;
    std::vector<std::string>& symbols_;
};

char code_of(const Py_buffer& view) {
    const char* format = view.format ? view.format : "B";
    if (*format == '<' || *format == '=' || *format == '@') ++format;
    if (!format[0] || format[1]) return 0;
    switch (*format) {
        case 'l': return view.itemsize == 8 ? 'q' : 'i';
        case 'L': return view.itemsize == 8 ? 'Q' : 'I';
        default: return *format;
    }
}

std::string name_of(char code) {
    switch (code) {
        case 'f': return "float32";
        case 'd': return "float64";
        case 'i': return "int32";
        case 'q': return "int64";
        case 'B': return "uint8";
        case 'I': return "uint32";
        case 'Q': return "uint64";
        case '?': return "bool";
        case 'R': return "a float";
        case 'W': return "an int";
        case 'T': return "a bool";
        default: return code ? std::string("format '") + code + "'" : "another dtype";
    }
}

std::string told(char code, int rank) {
    return rank < 0 ? name_of(code) : "a " + std::to_string(rank) + "-dimensional array of " + name_of(code);
}

bool same_type(const Want& want, const Leaf& leaf) {
    if (want.code == leaf.code && want.rank == leaf.rank) return true;
    return want.code == 'R' && leaf.code == 'W';
}
bool same(const Want& want, const Leaf& leaf) { return same_type(want, leaf) && !(want.writes && leaf.view.readonly); }

bool fail(PyObject* kind, const std::string& text) {
    PyErr_SetString(kind, text.c_str());
    return false;
}

// Whether all values are in 0..below - 1, or -1 if that is allowed. Without a branch inside: vector code.
template <class T> bool all_below(const T* values, i64 n, i64 below, bool minus_one) {
    using U = std::make_unsigned_t<T>;
    const U shift = minus_one ? 1 : 0;
    if (below + i64(shift) > i64(std::numeric_limits<T>::max()))
        below = i64(std::numeric_limits<T>::max()) - i64(shift);
    const U limit = static_cast<U>(below + i64(shift));
    int bad = 0;
    for (i64 i = 0; i < n; ++i) bad |= static_cast<U>(values[i]) + shift >= limit;
    return !bad;
}

}  // namespace

// The arguments of one call: arrays are held until it ends.
struct Kernel::Reading {
    Leaf leaves[MOST_PLACES];
    const Item* items[MOST_PLACES];
    int count = 0;

    Reading() {}
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
        for (int i = 0; i < count; ++i)
            if (leaves[i].rank >= 0) PyBuffer_Release(&leaves[i].view);
    }
    i64 entries(int i) const {
        i64 product = 1;
        for (int d = 0; d < leaves[i].rank; ++d) product *= leaves[i].view.shape[d];
        return product;
    }
};

namespace {

bool read_number(PyObject* from, Leaf& leaf) {
    leaf.rank = -1;
    leaf.view.readonly = 0;
    if (PyBool_Check(from)) {
        leaf.code = 'T', leaf.whole = from == Py_True, leaf.real = static_cast<double>(leaf.whole);
        return true;
    }
    if (PyFloat_Check(from)) {
        leaf.code = 'R', leaf.real = PyFloat_AsDouble(from), leaf.whole = 0;
        return true;
    }
    PyObject* whole = PyNumber_Index(from);
    if (whole) {
        leaf.code = 'W', leaf.whole = PyLong_AsLongLong(whole), leaf.real = static_cast<double>(leaf.whole);
        Py_DECREF(whole);
        return !PyErr_Occurred();
    }
    PyErr_Clear();
    leaf.code = 'R', leaf.real = PyFloat_AsDouble(from), leaf.whole = 0;
    return !PyErr_Occurred();
}

// One argument; `why` says what is wrong with it.
bool read_leaf(PyObject* from, Leaf& leaf, std::string& why) {
    if (PyFloat_Check(from) || PyLong_Check(from)) {
        if (read_number(from, leaf)) return true;
        PyErr_Clear();
        why = "is too large a number";
        return false;
    }
    if (!PyObject_CheckBuffer(from) || PyObject_GetBuffer(from, &leaf.view, PyBUF_RECORDS_RO) != 0) {
        PyErr_Clear();
        if (read_number(from, leaf)) return true;
        PyErr_Clear();
        why = "is neither an array of numbers nor a number";
        return false;
    }
    if (leaf.view.ndim == 0) {  // a numpy scalar
        const char code = code_of(leaf.view);
        PyBuffer_Release(&leaf.view);
        const bool read = read_number(from, leaf);
        if (code == '?') leaf.code = 'T', leaf.whole = leaf.real != 0;
        if (read) return true;
        PyErr_Clear();
        why = "is neither an array of numbers nor a number";
        return false;
    }
    leaf.rank = static_cast<signed char>(leaf.view.ndim);
    leaf.code = code_of(leaf.view);
    if (!PyBuffer_IsContiguous(&leaf.view, 'C')) why = "must be contiguous, in C order";
    else if (leaf.view.itemsize &&
             reinterpret_cast<std::uintptr_t>(leaf.view.buf) % static_cast<std::size_t>(leaf.view.itemsize))
        why = "is not aligned";
    else return true;
    PyBuffer_Release(&leaf.view);
    return false;
}

}  // namespace

Kernel::Kernel(const char* declaration, std::vector<Form> forms) : forms_(std::move(forms)) {
    const char* open = std::strchr(declaration, '(');
    if (!open) throw std::invalid_argument("kernel declared without arguments");
    name_.assign(declaration, open);
    Parser parser(open, symbols_);
    items_ = parser.list();
    signature_ = name_ + "(";
    std::size_t places = 0;
    const auto check = [&](const auto& self, const std::vector<Item>& items) -> void {
        for (const Item& item : items) {
            if (!item.items.empty()) {
                self(self, item.items);
                continue;
            }
            for (const Form& form : forms_) {
                if (form.wants.size() <= places)
                    throw std::invalid_argument(name_ + ": declared with too many arguments");
                const Want& want = form.wants[places];
                const bool whole = want.code == 'i' || want.code == 'q' || want.code == 'W';
                const bool ranked = item.lengths.size() == static_cast<std::size_t>(want.rank < 0 ? 0 : want.rank);
                if (!ranked || (item.indexes && !whole))
                    throw std::invalid_argument(name_ + ": " + item.name + " is declared wrongly");
            }
            ++places;
        }
    };
    check(check, items_);
    for (std::size_t i = 0; i < items_.size(); ++i) signature_ += (i ? ", " : "") + items_[i].name;
    signature_ += ")\n--\n\nCompiled; its twin in kfree.kernels.reference says what it does.";
    if (places > MOST_PLACES) throw std::invalid_argument(name_ + ": too many arguments");
    for (const Form& form : forms_)
        if (form.wants.size() != places) throw std::invalid_argument(name_ + ": declared with too few arguments");
}

bool Kernel::read(const std::vector<Item>& items, PyObject* const* arguments, Reading& reading) const {
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Item& item = items[i];
        if (!item.items.empty()) {
            if (!PyTuple_Check(arguments[i]) ||
                PyTuple_Size(arguments[i]) != static_cast<Py_ssize_t>(item.items.size()))
                return fail(PyExc_TypeError,
                            name_ + ": " + item.name + " must be a tuple of " + std::to_string(item.items.size()));
            PyObject* parts[MOST_PLACES];
            for (std::size_t part = 0; part < item.items.size(); ++part)
                parts[part] = PyTuple_GetItem(arguments[i], static_cast<Py_ssize_t>(part));
            if (!read(item.items, parts, reading)) return false;
            continue;
        }
        std::string why;
        if (!read_leaf(arguments[i], reading.leaves[reading.count], why))
            return fail(PyExc_TypeError, name_ + ": " + item.name + " " + why);
        reading.items[reading.count++] = &item;
    }
    return true;
}

bool Kernel::check_lengths(const Reading& reading) const {
    i64 value[MOST_SYMBOLS];
    int owner[MOST_SYMBOLS];
    for (int s = 0; s < MOST_SYMBOLS; ++s) owner[s] = -1;
    const auto wanted = [&](const Length& length) {
        return length.symbol < 0 ? length.plus : length.times * value[length.symbol] + length.plus;
    };
    for (int round = 0; round < 2; ++round)  // lengths that are letters first, then what is told of them
        for (int i = 0; i < reading.count; ++i) {
            const Item& item = *reading.items[i];
            const Leaf& leaf = reading.leaves[i];
            if (item.lengths.empty() || (item.optional && leaf.view.shape[0] == 0)) continue;
            for (int d = 0; d < leaf.rank; ++d) {
                const Length& length = item.lengths[static_cast<std::size_t>(d)];
                const i64 found = leaf.view.shape[d];
                if (length.any || length.open != (round == 1)) continue;
                if (length.symbol >= 0 && owner[length.symbol] < 0) {
                    const i64 rest = found - length.plus;
                    if (length.open || rest < 0 || rest % length.times)
                        return fail(PyExc_ValueError, name_ + ": " + item.name + " has an impossible length " +
                                                          std::to_string(found) + " along axis " + std::to_string(d));
                    value[length.symbol] = rest / length.times, owner[length.symbol] = i;
                    continue;
                }
                if (length.open ? found >= wanted(length) : found == wanted(length)) continue;
                std::string text = name_ + ": " + item.name + " has length " + std::to_string(found) + " along axis " +
                                   std::to_string(d) + ", but " + (length.open ? "at least " : "") +
                                   std::to_string(wanted(length)) + " is wanted";
                if (length.symbol >= 0)
                    text += ", as " + reading.items[owner[length.symbol]]->name + " tells (" +
                            symbols_[static_cast<std::size_t>(length.symbol)] + ")";
                return fail(PyExc_ValueError, text);
            }
        }
    for (int i = 0; i < reading.count; ++i) {
        const Item& item = *reading.items[i];
        const Leaf& leaf = reading.leaves[i];
        if (!item.indexes || (item.below.symbol >= 0 && owner[item.below.symbol] < 0)) continue;
        const i64 below = wanted(item.below);
        const bool right =
            leaf.rank < 0 ? all_below(&leaf.whole, 1, below, item.minus_one)
            : leaf.code == 'i'
                ? all_below(static_cast<const i32*>(leaf.view.buf), reading.entries(i), below, item.minus_one)
                : all_below(static_cast<const i64*>(leaf.view.buf), reading.entries(i), below, item.minus_one);
        if (!right)
            return fail(PyExc_IndexError, name_ + ": " + item.name + " must hold indices below " +
                                              std::to_string(below) + (item.minus_one ? ", or -1" : ""));
    }
    return true;
}

bool Kernel::fits(const Form& form, const Reading& reading) const {
    for (int i = 0; i < reading.count; ++i)
        if (!same(form.wants[static_cast<std::size_t>(i)], reading.leaves[i])) return false;
    return true;
}

// The first argument that no form takes whose other arguments before it fit.
void Kernel::complain_of_types(const Reading& reading) const {
    int far = -1;
    std::string wanted;
    for (const Form& form : forms_) {
        int i = 0;
        while (i < reading.count && same(form.wants[static_cast<std::size_t>(i)], reading.leaves[i])) ++i;
        if (i < far) continue;
        const Want& want = form.wants[static_cast<std::size_t>(i)];
        const std::string text =
            (want.rank >= 0 && want.writes && same_type(want, reading.leaves[i]) ? "writable"
                                                                                 : told(want.code, want.rank));
        if (i > far) wanted = text;
        else if (wanted.find(text) == std::string::npos) wanted += " or " + text;
        far = i;
    }
    const Leaf& leaf = reading.leaves[far];
    fail(PyExc_TypeError, name_ + ": " + reading.items[far]->name + " must be " + wanted + ", but is " +
                              told(leaf.code, leaf.rank) +
                              (leaf.rank >= 0 && leaf.view.readonly ? " that is read-only" : ""));
}

PyObject* Kernel::operator()(PyObject* const* arguments, Py_ssize_t count) const {
    if (count != static_cast<Py_ssize_t>(items_.size())) {
        fail(PyExc_TypeError,
             name_ + " takes " + std::to_string(items_.size()) + " arguments, but got " + std::to_string(count));
        return nullptr;
    }
    Reading reading;
    if (!read(items_, arguments, reading)) return nullptr;
    const Form* chosen = nullptr;
    for (const Form& form : forms_)
        if (fits(form, reading)) {
            chosen = &form;
            break;
        }
    if (!chosen) {
        complain_of_types(reading);
        return nullptr;
    }
    if (!check_lengths(reading)) return nullptr;
    try {
        return chosen->call(reading.leaves);
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    } catch (const std::exception& error) {
        fail(PyExc_ValueError, name_ + ": " + error.what());
        return nullptr;
    }
}

}  // namespace border
