// What replies about streams hold of clocks and of blocks: it is left out, by name and by place.
package main

// timesOfStreams are names in a stream's description whose values tell when, or how its blocks came about.
var timesOfStreams = map[string]bool{"seen-time": true, "idle": true, "radix-tree-keys": true,
	"radix-tree-nodes": true}

// streamReplies are the commands whose replies hold such things.
var streamReplies = map[string]bool{"XINFO": true, "XPENDING": true}

// fullStream asks for all that a stream is.
func fullStream(key string) []string { return []string{"XINFO", "STREAM", key, "FULL", "COUNT", "0"} }

// withoutTimes is a reply about a stream without its times: those with a name, and those of a pending entry,
// which is an ID, perhaps a consumer, a time, and how often it was delivered.
func (r reply) withoutTimes() reply {
	kinds := ""
	for _, element := range r.elements {
		kinds += string(element.kind)
	}
	when := map[string]int{"$$::": 2, "$::": 1}[kinds]
	out := reply{kind: r.kind, text: r.text}
	for i, element := range r.elements {
		isNamed := i > 0 && timesOfStreams[r.elements[i-1].text] && i%2 == 1
		if isNamed || when > 0 && i == when {
			element = reply{kind: '+', text: "time"}
		}
		out.elements = append(out.elements, element.withoutTimes())
	}
	return out
}
