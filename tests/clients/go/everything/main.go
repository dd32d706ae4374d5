// Reads all that go-ovirt's services reach, and prints the address of each with how many entries it lists, or
// the error. Arguments: the URL of an engine's API, and the file of the certificate of its authority.
package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	ovirtsdk "github.com/ovirt/go-ovirt"
)

// How many services are below each other at most, and of how many entries of a list all is read.
const deepest, entries = 5, 4

func main() {
	connection, err := ovirtsdk.NewConnectionBuilder().URL(os.Args[1]).CAFile(os.Args[2]).
		Username("admin@internal").Password("password").Timeout(20 * time.Second).Build()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	walk(reflect.ValueOf(connection.SystemService()), "", 0)
}

func walk(service reflect.Value, address string, depth int) {
	if depth == deepest {
		return
	}
	ids, seen := read(service)
	if seen != "" {
		fmt.Println(address, seen)
	}
	if strings.HasPrefix(seen, "error") {
		return
	}
	for index := 0; index < service.NumMethod(); index++ {
		name, method := service.Type().Method(index).Name, service.Method(index)
		if name == "Service" || !strings.HasSuffix(name, "Service") || method.Type().NumOut() != 1 {
			continue
		}
		if method.Type().NumIn() == 0 {
			below := strings.ToLower(strings.TrimSuffix(name, "Service"))
			walk(method.Call(nil)[0], address+"/"+below, depth+1)
			continue
		}
		for _, id := range ids {
			walk(method.Call([]reflect.Value{reflect.ValueOf(id)})[0], address+"/"+id, depth+1)
		}
	}
}

// read lists what a service lists, or else gets what it gets; gives the first ids and what there was to see.
func read(service reflect.Value) ([]string, string) {
	if list := service.MethodByName("List"); list.IsValid() {
		response, err := send(list)
		if err != nil {
			return nil, "error " + err.Error()
		}
		return listed(response)
	}
	if get := service.MethodByName("Get"); get.IsValid() {
		if _, err := send(get); err != nil {
			return nil, "error " + err.Error()
		}
		return nil, "is there"
	}
	return nil, ""
}

func send(method reflect.Value) (reflect.Value, error) {
	results := method.Call(nil)[0].MethodByName("Send").Call(nil)
	err, _ := results[1].Interface().(error)
	return results[0], err
}

// listed finds the one method of a response that gives a slice.
func listed(response reflect.Value) ([]string, string) {
	for index := 0; index < response.NumMethod(); index++ {
		method := response.Method(index)
		if method.Type().NumIn() != 0 || method.Type().NumOut() != 2 {
			continue
		}
		found := method.Call(nil)[0]
		if found.Kind() != reflect.Ptr || found.IsNil() {
			continue
		}
		slice := found.MethodByName("Slice").Call(nil)[0]
		ids := []string{}
		for place := 0; place < slice.Len() && place < entries; place++ {
			ids = append(ids, slice.Index(place).MethodByName("Id").Call(nil)[0].String())
		}
		return ids, fmt.Sprint(slice.Len())
	}
	return nil, "0"
}
