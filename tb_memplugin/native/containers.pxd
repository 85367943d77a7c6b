"""Insertion into C++ containers, with a MemoryError where memory is too small.

Cython declares `map[key] = value` and `queue.push(value)` without exceptions, so an exception would end the process.
"""

cdef extern from *:
    """
    template <class Map, class Key, class Value>
    static inline void tbm_put(Map& map, const Key& key, const Value& value) { map[key] = value; }
    template <class Map, class Iterator, class Key, class Value>
    static inline void tbm_put_before(Map& map, const Iterator& next, const Key& key, const Value& value) {
        map.emplace_hint(next, key, value);
    }
    template <class Queue, class Value>
    static inline void tbm_push(Queue& queue, const Value& value) { queue.push(value); }
    """
    void put "tbm_put"[M, K, V](M&, const K&, const V&) except + nogil
    void put_before "tbm_put_before"[M, I, K, V](M&, const I&, const K&, const V&) except + nogil
    void push "tbm_push"[Q, V](Q&, const V&) except + nogil
